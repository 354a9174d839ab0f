import { createSocket } from 'node:dgram';
import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net';
import { FakeClock, noMetrics, systemClock } from '@keelson/core/runtime';
import { freePort, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { ProxyLimits, ProxyMetrics } from '../src/proxy/port-listener.ts';
import { TcpPort } from '../src/proxy/tcp-port.ts';
import { UdpPort } from '../src/proxy/udp-port.ts';
import type { Target } from '../src/routes/service-table.ts';
import { TargetChoice, usableTargets } from '../src/routes/target-choice.ts';

const metrics = new ProxyMetrics(noMetrics);

function target(port: number, changes: Partial<Target> = {}): Target {
  const state = { ready: true, serving: true, terminating: false };
  return { address: '127.0.0.1', port, nodeName: 'here', hostname: undefined, ...state, ...changes };
}

async function backend(t: ExecutionContext, serve: (socket: Socket) => void): Promise<number> {
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {});
    serve(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** All that a socket receives until its peer ends; the other direction stays open. */
async function text(socket: Socket): Promise<string> {
  let all = '';
  socket.setEncoding('utf8').on('data', (data: string) => {
    all += data;
  });
  await once(socket, 'end');
  return all;
}

interface TcpProxy {
  readonly choice: TargetChoice;
  readonly listener: TcpPort;
  connect(): Promise<Socket>;
}

async function proxy(t: ExecutionContext, targets: readonly Target[], max = 100): Promise<TcpProxy> {
  const choice = new TargetChoice({ affinityMs: undefined, now: () => 0 });
  choice.update(targets, undefined);
  const listener = new TcpPort(choice, new ProxyLimits(max), metrics);
  const port = await freePort();
  await listener.listen('127.0.0.1', port);
  t.teardown(() => listener.destroy());
  return {
    choice,
    listener,
    connect: async () => {
      const socket = connect({ host: '127.0.0.1', port, allowHalfOpen: true });
      t.teardown(() => socket.destroy());
      socket.on('error', () => {});
      await once(socket, 'connect');
      return socket;
    },
  };
}

test('ready targets are used, and serving terminating ones only when none is ready', (t) => {
  const ready = target(1);
  const leaving = target(2, { ready: false, terminating: true });
  const starting = target(3, { ready: false, serving: false });
  const gone = target(4, { ready: false, serving: false, terminating: true });
  const far = target(5, { nodeName: 'far' });
  const local = ({ nodeName }: Target) => nodeName === 'here';
  t.deepEqual(usableTargets([ready, leaving, starting, gone, far], undefined), [ready, far]);
  t.deepEqual(usableTargets([leaving, starting, gone], undefined), [leaving]);
  t.deepEqual(usableTargets([starting, gone], undefined), []);
  t.deepEqual(usableTargets([leaving, far], local), [leaving]);
  t.deepEqual(usableTargets([far], local), []);
});

test('a client keeps its target until its session affinity expires or the target is removed', (t) => {
  let now = 0;
  const choice = new TargetChoice({ affinityMs: 1000, now: () => now });
  const [a, b, c] = [target(1), target(2), target(3)];
  choice.update([a, b, c], 1000);
  const first = choice.choose('192.0.2.1');
  for (let i = 0; i < 5; i++) {
    now += 999;
    t.is(choice.choose('192.0.2.1'), first);
  }
  t.not(choice.choose('192.0.2.2'), first, 'another client gets the next target');
  now += 1000;
  t.not(choice.choose('192.0.2.1'), first, 'idle for too long');
  const held = choice.choose('192.0.2.1');
  choice.update(
    [a, b, c].filter((one) => one !== held),
    1000,
  );
  t.not(choice.choose('192.0.2.1'), held);
  t.not(choice.choose('192.0.2.3', [a]), a, 'a target that was unreachable is skipped');
  choice.update([], 1000);
  t.is(choice.choose('192.0.2.1'), undefined);
});

test('each direction of a connection is closed independently, without data loss', async (t) => {
  const received: string[] = [];
  const port = await backend(t, (socket) => {
    socket.write('welcome ');
    void text(socket).then((all) => {
      received.push(all);
      socket.end(`got ${all.length}`);
    });
  });
  const { connect: open } = await proxy(t, [target(port)]);
  const client = await open();
  const body = 'x'.repeat(3_000_000);
  client.end(body);
  t.is(await text(client), `welcome got ${body.length}`);
  t.is(received[0], body);
});

test('a slow reader applies back pressure to the sender', async (t) => {
  const size = 64 * 1024 * 1024;
  let sent = 0;
  const chunk = Buffer.alloc(64 * 1024);
  const port = await backend(t, (socket) => {
    const send = () => {
      while (sent < size) {
        sent += chunk.length;
        if (!socket.write(chunk)) return void socket.once('drain', send);
      }
      socket.end();
    };
    send();
  });
  const { connect: open } = await proxy(t, [target(port)]);
  const client = await open();
  client.pause();
  let before = -1;
  await until(async () => {
    if (sent > 0 && sent === before) return true;
    before = sent;
    await new Promise((resolve) => setTimeout(resolve, 50));
    return false;
  });
  t.true(sent < size / 2, `${sent} bytes were taken from the target`);
  let got = 0;
  client.on('data', (data: Buffer) => {
    got += data.length;
  });
  client.resume();
  await once(client, 'end');
  t.is(got, size);
});

test('changes of the targets under load do not reset established connections', async (t) => {
  const echo = (socket: Socket) => void socket.pipe(socket);
  const ports = [await backend(t, echo), await backend(t, echo)];
  const { connect: open, choice, listener } = await proxy(t, [target(ports[0] ?? 0)]);
  const clients = await Promise.all(Array.from({ length: 20 }, open));
  const failures: unknown[] = [];
  const rounds = clients.map(async (client, i) => {
    client.on('error', (error) => failures.push(error));
    for (let round = 0; round < 50; round++) {
      const message = `${i}:${round};`.padEnd(2000, '.');
      let answer = '';
      client.write(message);
      while (answer.length < message.length) answer += String((await once(client, 'data'))[0]);
      if (answer !== message) failures.push(`${i} ${round}`);
      choice.update([target(ports[round % 2] ?? 0)], undefined);
    }
  });
  await Promise.all(rounds);
  choice.update([], undefined);
  void listener.close();
  const [first] = clients;
  first?.write('still');
  t.is(String((await once(first as Socket, 'data'))[0]), 'still', 'connections survive the end of the service');
  t.deepEqual(failures, []);
});

test('a refused connection is retried at another target; without targets, and above the limit, the client is reset', async (t) => {
  const port = await backend(t, (socket) => socket.end('here'));
  const dead = target(await freePort());
  const { connect: open, choice } = await proxy(t, [dead, target(port)]);
  for (let i = 0; i < 4; i++) t.is(await text(await open()), 'here');
  choice.update([dead], undefined);
  const lost = await open();
  t.is(((await once(lost, 'error')) as NodeJS.ErrnoException[])[0]?.code, 'ECONNRESET');

  const hold = await backend(t, (socket) => {
    socket.write('held');
    socket.resume().on('end', () => socket.end());
  });
  const limited = await proxy(t, [target(hold)], 1);
  const first = await limited.connect();
  await once(first, 'data');
  const second = connect({ host: '127.0.0.1', port: first.remotePort ?? 0 });
  t.is(((await once(second, 'error')) as NodeJS.ErrnoException[])[0]?.code, 'ECONNRESET');
  first.destroy();
  await until(async () => {
    const third = connect({ host: '127.0.0.1', port: first.remotePort ?? 0 });
    const [data] = await Promise.race([once(third, 'data'), once(third, 'error')]);
    third.destroy();
    return String(data) === 'held';
  });
});

test('responses to datagrams are returned, and flows follow their targets and end when they are idle', async (t) => {
  const clock = new FakeClock();
  const server = async (name: string) => {
    const socket = createSocket('udp4');
    socket.on('message', (data, from) => socket.send(`${name} ${data}`, from.port, from.address));
    socket.bind(0, '127.0.0.1');
    await once(socket, 'listening');
    t.teardown(() => socket.close());
    return target(socket.address().port);
  };
  const [a, b] = [await server('a'), await server('b')];
  const choice = new TargetChoice({ affinityMs: undefined, now: () => clock.monotonic() });
  choice.update([a], undefined);
  const limits = new ProxyLimits(2);
  const proxied = new UdpPort(choice, limits, metrics, clock);
  const port = await freePort();
  await proxied.listen('127.0.0.1', port);
  t.teardown(() => proxied.destroy());
  const clients = Array.from({ length: 3 }, () => createSocket('udp4'));
  t.teardown(() => clients.map((client) => client.close()));
  /** Loss is possible even on loopback, so a question is repeated. */
  const ask = (client: number, question: string) =>
    until(async () => {
      const socket = clients[client] as (typeof clients)[number];
      socket.send(question, port, '127.0.0.1');
      const answer = once(socket, 'message').then(([data]) => String(data));
      const late = new Promise<undefined>((resolve) => setTimeout(resolve, 500, undefined));
      return Promise.race([answer, late]);
    });
  t.is(await ask(0, 'one'), 'a one');
  t.is(await ask(1, 'two'), 'a two');
  t.is(proxied.flows, 2);
  clients[2]?.send('three', port, '127.0.0.1');
  t.is(await ask(0, 'more'), 'a more');
  t.is(proxied.flows, 2, 'flows above the limit are dropped');
  choice.update([b], undefined);
  t.is(await ask(0, 'moved'), 'b moved');
  clock.advance(45_000);
  t.is(await ask(0, 'kept'), 'b kept');
  clock.advance(30_000);
  t.is(proxied.flows, 1, 'the flow of the second client was idle for 60 s');
  clock.advance(75_000);
  t.is(proxied.flows, 0);
  t.is(await ask(2, 'free'), 'b free');
});

test('an address in use is reported as an error of the listener', async (t) => {
  const { listener } = await proxy(t, []);
  t.truthy(listener);
  const port = await backend(t, () => {});
  const choice = new TargetChoice({ affinityMs: undefined, now: () => systemClock.monotonic() });
  const second = new TcpPort(choice, new ProxyLimits(1), metrics);
  await t.throwsAsync(second.listen('127.0.0.1', port), { code: 'EADDRINUSE' });
});
