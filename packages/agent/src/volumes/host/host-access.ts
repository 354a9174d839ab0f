import { accessSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { type RunProgram, runProgram } from '../../run-program.ts';
import { commandFiles } from './command-files.ts';
import type { HostFiles } from './host-files.ts';
import { localFiles } from './local-files.ts';

/** The machine on which containers run, as far as volumes have to do with it. */
export interface HostAccess {
  readonly files: HostFiles;
  readonly run: RunProgram;
  /** The mounts that are there, in the form of /proc/self/mountinfo. */
  mountTable(): Promise<string>;
}

/** The machine as this process sees it. */
export const localHost: HostAccess = {
  files: localFiles,
  run: runProgram,
  mountTable: () => readFile('/proc/self/mountinfo', 'utf8').catch(() => ''),
};

/** Where an agent in a container finds the mount namespace of its host: the first of these that exists. */
const namespaces = ['/rootfs/proc/1/ns/mnt', '/proc/1/ns/mnt'] as const;

/** The machine as seen from a mount namespace: every look at files and every program goes through `nsenter`. */
export function enteredHost(run: RunProgram = runProgram, namespace: string = hostNamespace()): HostAccess {
  const within: RunProgram = (program, words, input) => run('nsenter', [`--mount=${namespace}`, '--', program, ...words], input);
  return {
    files: commandFiles(within),
    run: within,
    mountTable: async () => (await within('cat', ['/proc/self/mountinfo'])).toString('utf8'),
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
