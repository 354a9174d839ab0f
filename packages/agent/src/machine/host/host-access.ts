import { accessSync, constants } from 'node:fs';
import { open, readFile, readlink } from 'node:fs/promises';
import { type RunProgram, runProgram } from '../../base/run-program.ts';
import { commandFiles } from './command-files.ts';
import type { HostFiles } from './host-files.ts';
import { localFiles } from './local-files.ts';

/** Access of volumes to the machine that runs the containers. */
export interface HostAccess {
  readonly files: HostFiles;
  readonly run: RunProgram;
  /** The mount table in the form of /proc/self/mountinfo. */
  mountTable(): Promise<string>;
  /**
   * Bind-mounts `source` at the existing `target` with the program `mount`. The source is opened, checked, and mounted
   * through the open descriptor, so that a process that writes to a parent directory cannot replace it in between.
   *
   * @throws when the source does not exist, or its path contains a symbolic link
   */
  bind(mount: string, source: string, target: string): Promise<void>;
}

/** `O_PATH` of Linux, which Node does not define: opens any file without reading from it or blocking. */
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
        if ((await readlink(descriptor)) !== source) throw new Error(`${source} contains a symbolic link`);
        await run(mount, bindArguments(descriptor, target));
      } finally {
        await held.close();
      }
    },
  };
}

/**
 * `--no-canonicalize`: otherwise `mount` resolves the descriptor to a path, which may point elsewhere when it is
 * mounted.
 */
const bindArguments = (descriptor: string, target: string) => ['--no-canonicalize', '-o', 'bind', descriptor, target];

export const localHost = localAccess(runProgram);

/** Arguments: the source, then the command that mounts its standard input. */
const bindScript = `source=$1
shift
{
  [ "$(readlink /proc/self/fd/0)" = "$source" ] || { echo "$source contains a symbolic link" >&2; exit 1; }
  exec "$@"
} < "$source"`;

/** Mount namespace of the host for an agent in a container: the first of these that exists. */
const namespaces = ['/rootfs/proc/1/ns/mnt', '/proc/1/ns/mnt'] as const;

/** The machine in another mount namespace: all file access and all programs run through `nsenter`. */
export function enteredHost(run: RunProgram = runProgram, namespace: string = hostNamespace()): HostAccess {
  const within: RunProgram = (program, words, input) =>
    run('nsenter', [`--mount=${namespace}`, '--', program, ...words], input);
  return {
    files: commandFiles(within),
    run: within,
    mountTable: async () => (await within('cat', ['/proc/self/mountinfo'])).toString('utf8'),
    async bind(mount, source, target) {
      await within('sh', ['-c', bindScript, 'sh', source, mount, ...bindArguments('/proc/self/fd/0', target)]);
    },
  };
}

function hostNamespace(): string {
  for (const path of namespaces) {
    try {
      accessSync(path);
      return path;
    } catch {
      // The next path may exist.
    }
  }
  return namespaces[0];
}
