import { readFileSync } from 'node:fs';
import { connect } from 'node:net';
import test from 'ava';
import { listenOn } from '../../src/server/listen.ts';

/** Connections of the whole system for which there was no room; other tests may count as well. */
function overflows(): number {
  const [names = '', values = ''] = readFileSync('/proc/net/netstat', 'utf8').split('\n');
  return Number(values.split(' ')[names.split(' ').indexOf('ListenOverflows')]);
}

async function overflowsOf(connections: number): Promise<number> {
  const server = await listenOn({ host: '127.0.0.1', port: 0 }, () => {}, undefined, { http: {} });
  const before = overflows();
  // All knock before the first is let in: the loop that accepts is this one.
  const sockets = Array.from({ length: connections }, () => connect({ host: '127.0.0.1', port: server.port }));
  await new Promise<void>((resolve) => process.nextTick(resolve));
  const refused = overflows() - before;
  await Promise.all(sockets.map((socket) => new Promise((resolve) => socket.once('connect', resolve))));
  for (const socket of sockets) socket.destroy();
  await server.close(0);
  return refused;
}

const room = process.platform === 'linux' ? Number(readFileSync('/proc/sys/net/core/somaxconn', 'utf8')) : 0;

const title = 'two thousand clients that come at once all find room to wait';

const few = room < 2000;

(few ? test.skip : test)(few ? `${title} [not run: the system allows ${room}]` : title, async (t) => {
  let least = Number.POSITIVE_INFINITY;
  for (let attempt = 0; attempt < 3 && least > 0; attempt += 1) least = Math.min(least, await overflowsOf(2000));
  t.is(least, 0);
});
