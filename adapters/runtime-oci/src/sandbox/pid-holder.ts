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
} from '@keelson/container-host';
import { RuntimeError } from '@keelson/container-runtime';
import { binaryEnvironment, lastMessageIn, type OciBinary } from '../binary/oci-binary.ts';
import type { PodPlace } from '../bundle/pod-place.ts';
import { maskedPaths, readonlyPaths } from '../bundle/protected-paths.ts';
import type { Programs } from '../launch/programs.ts';

const programName = 'holder';

/**
 * Writes the bundle of the holder. Its root contains only the holder, so processes of the same PID namespace can access
 * no other files of the machine through it.
 */
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
 * Starts the first process of the pod's PID namespace and mounts the namespace at its file.
 *
 * @throws RuntimeError `Internal`
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
  const commandLine = binary.commandLine(
    log,
    'run',
    '--detach',
    '--bundle',
    folder,
    '--pid-file',
    pidFile,
    holderId(sandboxId),
  );
  await runToEnd(commandLine).catch(async (error: Error) => {
    throw new RuntimeError(
      'Internal',
      `cannot create the PID namespace of the pod: ${(await lastMessageIn(log)) ?? error.message}`,
    );
  });
  const pid = (await readFile(pidFile, 'utf8')).trim();
  await writeFile(join(folder, 'stat'), await readFile(`/proc/${pid}/stat`, 'latin1'));
  await writeFile(place.pid, '');
  const problem = await tryTool('mount', ['--bind', `/proc/${pid}/ns/pid`, place.pid]);
  if (problem !== undefined)
    throw new RuntimeError('Internal', `cannot mount the PID namespace of the pod: ${problem}`);
}

/**
 * Runs the binary until it ends. The binary does not inherit the standard streams of the agent, because the container
 * processes that it starts would keep them open.
 */
export function runToEnd(commandLine: readonly string[]): Promise<void> {
  const [program = '', ...args] = commandLine;
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

/** Whether the first process of the pod's PID namespace is running. Without it no process can join the namespace. */
export async function isHolderAlive(place: PodPlace): Promise<boolean> {
  const holder = await holderOf(place);
  return holder !== undefined && isAlive(holder);
}

/**
 * Kills the first process of the pod's PID namespace, if it is running. The kernel then kills all other processes in
 * the namespace.
 */
export async function stopHolder(binary: OciBinary, sandboxId: string, place: PodPlace): Promise<void> {
  const holder = await holderOf(place);
  if (holder !== undefined && isAlive(holder)) signalProcess(holder.pid, 'SIGKILL');
  await binary.delete(holderId(sandboxId));
}
