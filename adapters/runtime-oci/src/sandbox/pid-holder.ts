import { spawn } from 'node:child_process';
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import {
  isAlive,
  type ProcessIdentity,
  parseStat,
  readIfPresent,
  signalProcess,
  tryTool,
} from '@keelson/container-monitor';
import { RuntimeError } from '@keelson/container-runtime';
import { binaryEnvironment, lastMessageIn, type OciBinary } from '../binary/oci-binary.ts';
import { maskedPaths, readonlyPaths } from '../bundle/protected-paths.ts';
import type { Programs } from '../launch/programs.ts';
import type { PodPlace } from './pod-place.ts';

const programName = 'holder';

/** A bundle whose only file is the holder: nobody who shares its process ids can see more of the machine through it. */
export async function writeHolderBundle(
  folder: string,
  programs: Programs,
  options: { readonly args: readonly string[]; readonly cgroupsPath: string; readonly seccomp?: object },
): Promise<void> {
  await mkdir(join(folder, 'rootfs', 'proc'), { recursive: true, mode: 0o755 });
  await mkdir(join(folder, 'rootfs', 'dev'), { mode: 0o755 });
  await copyFile(programs.holder, join(folder, 'rootfs', programName));
  const none: string[] = [];
  const spec = {
    ociVersion: '1.0.2',
    process: {
      ...{ terminal: false, user: { uid: 0, gid: 0 }, args: [`/${programName}`, ...options.args], env: none, cwd: '/' },
      capabilities: { bounding: none, effective: none, permitted: none },
      noNewPrivileges: true,
    },
    root: { path: 'rootfs', readonly: true },
    mounts: [
      { destination: '/proc', type: 'proc', source: 'proc', options: ['nosuid', 'noexec', 'nodev'] },
      { destination: '/dev', type: 'tmpfs', source: 'tmpfs', options: ['nosuid', 'mode=755', 'size=64k'] },
    ],
    linux: {
      namespaces: [{ type: 'pid' }, { type: 'mount' }, { type: 'network' }, { type: 'ipc' }, { type: 'uts' }],
      cgroupsPath: options.cgroupsPath,
      resources: { devices: [{ allow: false, access: 'rwm' }] },
      maskedPaths,
      readonlyPaths,
      ...(options.seccomp && { seccomp: options.seccomp }),
    },
  };
  await writeFile(join(folder, 'config.json'), JSON.stringify(spec));
}

const holderId = (sandboxId: string) => `${sandboxId}-pids`;
const folderOf = (place: PodPlace) => join(place.folder, 'holder');

/**
 * Runs the first process of the pod's process id namespace, and mounts that namespace at its file.
 * @throws `Internal`
 */
export async function startHolder(
  binary: OciBinary,
  programs: Programs,
  sandboxId: string,
  place: PodPlace & { readonly pid: string },
  cgroupsPath: string,
): Promise<void> {
  const folder = folderOf(place);
  await mkdir(folder);
  await writeHolderBundle(folder, programs, { args: [], cgroupsPath });
  const pidFile = join(folder, 'pid');
  const log = join(folder, 'oci.log');
  const words = binary.words(log, 'run', '--detach', '--bundle', folder, '--pid-file', pidFile, holderId(sandboxId));
  await runToEnd(words).catch(async (error: Error) => {
    throw new RuntimeError('Internal', `cannot share process ids: ${(await lastMessageIn(log)) ?? error.message}`);
  });
  const pid = (await readFile(pidFile, 'utf8')).trim();
  await writeFile(join(folder, 'stat'), await readFile(`/proc/${pid}/stat`, 'latin1'));
  await writeFile(place.pid, '');
  const problem = await tryTool('mount', ['--bind', `/proc/${pid}/ns/pid`, place.pid]);
  if (problem !== undefined) throw new RuntimeError('Internal', `cannot keep the process ids of the pod: ${problem}`);
}

/** Runs the binary to its end without any of our streams, which what it starts would inherit. */
export function runToEnd(words: readonly string[]): Promise<void> {
  const [program = '', ...args] = words;
  return new Promise((resolve, reject) => {
    const child = spawn(program, args, { stdio: 'ignore', detached: true, cwd: '/', env: binaryEnvironment });
    child.on('error', reject);
    child.on('exit', (code, signal) => {
      if (code === 0) resolve();
      else reject(new Error(`${program} ended with ${signal ?? code}`));
    });
  });
}

async function holderOf(place: PodPlace): Promise<ProcessIdentity | undefined> {
  const text = await readIfPresent(join(folderOf(place), 'stat'));
  return text === undefined ? undefined : parseStat(text);
}

/** False when the pod's first process was killed: nothing can be started in its namespace any more. */
export async function isHolderAlive(place: PodPlace): Promise<boolean> {
  const holder = await holderOf(place);
  return holder !== undefined && isAlive(holder);
}

/** Ends the pod's first process, and with it all in its namespace; harmless when there is none. */
export async function stopHolder(binary: OciBinary, sandboxId: string, place: PodPlace): Promise<void> {
  const holder = await holderOf(place);
  if (holder !== undefined && isAlive(holder)) signalProcess(holder.pid, 'SIGKILL');
  await binary.delete(holderId(sandboxId));
}
