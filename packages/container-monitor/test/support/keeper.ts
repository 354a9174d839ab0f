import { mkdtempSync } from 'node:fs';
import { rm } from 'node:fs/promises';
import { createServer, type Socket } from 'node:net';
import { join } from 'node:path';
import { EventFeed } from '@keelson/container-runtime';
import { systemClock } from '@keelson/core/runtime';
import test, { type ExecutionContext } from 'ava';
import { type ContainerContext, prepareContainer, RunFiles, StateDirectory, stagingFolder } from '../../src/index.ts';
import { KeeperClient } from '../../src/logs/keeper-client.ts';
import { containerRecord } from './monitored.ts';

export const onLinux = process.platform === 'linux' ? test : test.skip;
export const id = 'c'.repeat(24);

/** Waits for a condition, at most 30 s; the assertions after it report what is missing. */
export async function until(condition: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000;
  while (!condition() && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 5));
}

/** Removes a state directory. A keeper may still write that a log is complete, so the removal is repeated then. */
export async function removeState(root: string): Promise<void> {
  await rm(root, { recursive: true, force: true, maxRetries: 10 });
}

/** A state directory with one prepared container, and a client that starts a real log keeper for it. */
export async function opened(t: ExecutionContext): Promise<{ context: ContainerContext; log: string; root: string }> {
  const root = mkdtempSync('/tmp/keelson-keeper-');
  const state = new StateDirectory(root, '#!/bin/sh\n');
  await state.prepare();
  const keeper = new KeeperClient(state, () => {});
  t.teardown(async () => {
    await keeper.close();
    await removeState(root);
  });
  const context: ContainerContext = {
    state,
    runFiles: new RunFiles(state.run),
    keeper,
    events: new EventFeed(() => 0),
    clock: systemClock,
    later: () => {},
  };
  const log = join(root, 'c.log');
  const { config } = containerRecord(id);
  const record = containerRecord(id, { logPath: log, config: { ...config, stdin: true, stdinOnce: true } });
  await prepareContainer(context, record, await stagingFolder(context, id));
  return { context, log, root };
}

export interface FakeKeeper {
  readonly state: StateDirectory;
  readonly client: KeeperClient;
  /** Connections that are open. */
  readonly sockets: Set<Socket>;
  /** Calls of the client's `onDisconnect`. */
  lost: number;
}

/** A server in place of the log keeper, which answers as the test wants, and a client of it. */
export async function fakeKeeper(
  t: ExecutionContext,
  onRequest: (socket: Socket, request: string) => void,
): Promise<FakeKeeper> {
  const root = mkdtempSync('/tmp/keelson-keeper-');
  const state = new StateDirectory(root, '#!/bin/sh\n');
  await state.prepare();
  const sockets = new Set<Socket>();
  const server = createServer((socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.on('data', (chunk) => onRequest(socket, String(chunk)));
  });
  await new Promise<void>((resolve) => server.listen(join(state.keeper, 'socket'), resolve));
  const client = new KeeperClient(state, () => {
    self.lost += 1;
  });
  const self: FakeKeeper = { state, client, sockets, lost: 0 };
  t.teardown(async () => {
    await client.close();
    server.close();
    await removeState(root);
  });
  return self;
}
