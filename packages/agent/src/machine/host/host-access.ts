import { accessSync, constants } from 'node:fs';
import { open, readFile, readlink } from 'node:fs/promises';
import { type RunProgram, runProgram } from '../../base/run-program.ts';
import { commandFiles } from './command-files.ts';
import type { HostFiles } from './host-files.ts';
import { localFiles } from './local-files.ts';

/** The machine on which containers run, as far as volumes have to do with it. */
export interface HostAccess {
  readonly files: HostFiles;
  readonly run: RunProgram;
  /** The mounts that are there, in the form of /proc/self/mountinfo. */
  mountTable(): Promise<string>;
  /**
   * Mounts with the program `mount` what is at `source` at `target`, which exists. The source is opened, checked and
   * mounted as it is open, so that processes that write to the directories above it cannot exchange it in between.
   * @throws when the source is gone, or has a symbolic link in its path
   */
  bind(mount: string, source: string, target: string): Promise<void>;
}

/** `O_PATH` of Linux, which Node does not name: opens anything, without reading from it or waiting for it. */
const pathOnly = 0o10000000;

/** The machine as this process sees it. */
export function localAccess(run: RunProgram): HostAccess {
  return {
    files: localFiles,
    run,
    mountTable: () => readFile('/proc/self/mountinfo', 'utf8').catch(() => ''),
    async bind(mount, source, target) {
      const held = await open(source, pathOnly | constants.O_NOFOLLOW);
      try {
        const descriptor = `/proc/${process.pid}/fd/${held.fd}`;
        if ((await readlink(descriptor)) !== source) throw new Error(`${source} is reached by a link`);
        await run(mount, bindWords(descriptor, target));
      } finally {
        await held.close();
      }
    },
  };
}

/** Otherwise the program resolves the descriptor to a path, which may lead elsewhere by the time it is mounted. */
const bindWords = (descriptor: string, target: string) => ['--no-canonicalize', '-o', 'bind', descriptor, target];

export const localHost = localAccess(runProgram);

/** Arguments: source, then the command that mounts what is open as its standard input. */
const bindScript = `source=$1
shift
{
  [ "$(readlink /proc/self/fd/0)" = "$source" ] || { echo "$source is reached by a link" >&2; exit 1; }
  exec "$@"
} < "$source"`;

/** Where an agent in a container finds the mount namespace of its host: the first of these that exists. */
const namespaces = ['/rootfs/proc/1/ns/mnt', '/proc/1/ns/mnt'] as const;

/** The machine as seen from a mount namespace: every look at files and every program goes through `nsenter`. */
export function enteredHost(run: RunProgram = runProgram, namespace: string = hostNamespace()): HostAccess {
  const within: RunProgram = (program, words, input) =>
    run('nsenter', [`--mount=${namespace}`, '--', program, ...words], input);
  return {
    files: commandFiles(within),
    run: within,
    mountTable: async () => (await within('cat', ['/proc/self/mountinfo'])).toString('utf8'),
    async bind(mount, source, target) {
      await within('sh', ['-c', bindScript, 'sh', source, mount, ...bindWords('/proc/self/fd/0', target)]);
    },
  };
}

function hostNamespace(): string {
  for (const path of namespaces) {
    try {
      accessSync(path);
      return path;
    } catch {
      // The next place may do.
    }
  }
  return namespaces[0];
}
