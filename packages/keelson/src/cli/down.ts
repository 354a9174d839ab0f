import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { isAlive, type ProcessIdentity } from '@keelson/container-host';
import type { ContainerRuntime } from '@keelson/container-runtime';
import { systemClock } from '@keelson/core/runtime';
import { createProcessRuntime } from '@keelson/runtime-process';
import { type ApiCommand, apiOptions, commandHelp, parseCommand } from './api-command.ts';
import { runningProcess } from './running-process.ts';

/** Time for the server and its agents to end, in addition to the time limit that they have themselves. */
const serverStopMs = 30_000;
/** Time that containers have between SIGTERM and SIGKILL. */
const containerStopMs = 10_000;
const pollMs = 50;

const command: ApiCommand = {
  name: 'keelson down',
  synopsis: `keelson down [--data DIR]

Stops everything that keelson up has started with the same data directory: the server with its controllers and
agents, and the processes of the pods. Objects are kept: the next keelson up runs the pods again.
`,
  options: apiOptions.filter(({ name }) => name === 'data'),
};

/** Runs `keelson down`. @throws UsageError for wrong arguments, Error when something could not be stopped */
export async function downCommand(
  words: readonly string[],
  env: Readonly<Record<string, string | undefined>>,
  print: (text: string) => void,
): Promise<void> {
  const { values, help, positional } = parseCommand(words, env, command);
  if (help || positional.length > 0) {
    print(commandHelp(command));
    return;
  }
  const data = String(values['data']);
  const server = await runningProcess(data);
  if (server !== undefined) {
    await stopServer(server);
    print(`keelson: stopped the server, process ${server.pid}\n`);
  }
  let pods = 0;
  // The agents have ended, so their state is not in use.
  for (const folder of await nodeFolders(data)) pods += await stopPods(join(folder, 'runtime'));
  if (pods > 0) print(`keelson: stopped ${pods} ${pods === 1 ? 'pod' : 'pods'}\n`);
  if (server === undefined && pods === 0) print(`keelson: nothing of ${data} is running\n`);
}

async function stopServer(server: ProcessIdentity): Promise<void> {
  process.kill(server.pid, 'SIGTERM');
  if (await ended(server, serverStopMs)) return;
  process.kill(server.pid, 'SIGKILL');
  if (!(await ended(server, serverStopMs))) throw new Error(`process ${server.pid} of the server does not end`);
}

async function ended(identity: ProcessIdentity, withinMs: number): Promise<boolean> {
  // Not injected: the end of another process takes real time.
  const deadline = performance.now() + withinMs;
  while (isAlive(identity)) {
    if (performance.now() > deadline) return false;
    await new Promise((resolve) => setTimeout(resolve, pollMs));
  }
  return true;
}

async function nodeFolders(data: string): Promise<string[]> {
  const names = await readdir(data).catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error;
    return [];
  });
  return names.filter((name) => /^node(-\d+)?$/.test(name)).map((name) => join(data, name));
}

/**
 * Stops and removes the pods of a node. The runtime identifies processes by their recorded ids and start times. The
 * process that keeps the logs ends itself when no container is left.
 */
async function stopPods(stateDirectory: string): Promise<number> {
  const { runtime } = await createProcessRuntime({ stateDirectory, clock: systemClock });
  try {
    const sandboxes = await runtime.listPodSandboxes();
    await Promise.all(sandboxes.map(({ id }) => stopPod(runtime, id)));
    return sandboxes.filter(({ state }) => state === 'ready').length;
  } finally {
    await runtime[Symbol.asyncDispose]();
  }
}

async function stopPod(runtime: ContainerRuntime, sandboxId: string): Promise<void> {
  const containers = await runtime.listContainers({ sandboxId, state: 'running' });
  await Promise.all(containers.map(({ id }) => runtime.stopContainer(id, { gracePeriodMs: containerStopMs })));
  await runtime.removePodSandbox(sandboxId);
}
