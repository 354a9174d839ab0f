import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import test, { type ExecutionContext } from 'ava';
import { FaultProxy } from '../../src/index.ts';

/** A server that sends back what it gets, behind a proxy. */
async function echo(t: ExecutionContext) {
  const sockets = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket);
    socket.on('error', () => {});
    socket.on('close', () => sockets.delete(socket));
    socket.pipe(socket);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const proxy = await FaultProxy.open({ target: { host: '127.0.0.1', port: (server.address() as AddressInfo).port } });
  t.teardown(async () => {
    await proxy.close();
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return { proxy, sockets };
}

class Client {
  readonly socket: Socket;
  received = Buffer.alloc(0);
  ended = false;
  error: string | undefined;
  closed = false;
  #wake: () => void = () => {};

  constructor(port: number) {
    this.socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
    this.socket.on('data', (bytes: Buffer) => {
      this.received = Buffer.concat([this.received, bytes]);
      this.#wake();
    });
    this.socket.on('end', () => {
      this.ended = true;
      this.#wake();
    });
    this.socket.on('error', (error: NodeJS.ErrnoException) => {
      this.error = error.code;
    });
    this.socket.on('close', () => {
      this.closed = true;
      this.#wake();
    });
  }

  async until(condition: (client: this) => boolean, timeoutMs = 5000): Promise<boolean> {
    const deadline = performance.now() + timeoutMs;
    while (!condition(this)) {
      const left = deadline - performance.now();
      if (left <= 0) return false;
      await new Promise<void>((resolve) => {
        const timer = setTimeout(resolve, left);
        this.#wake = () => {
          clearTimeout(timer);
          resolve();
        };
      });
    }
    return true;
  }
}

const got = (text: string) => (client: Client) => client.received.toString() === text;

test('the proxy forwards bytes in order, and the end of each direction', async (t) => {
  const { proxy } = await echo(t);
  const client = new Client(proxy.port);
  const big = Buffer.alloc(3_000_000, 'abcdefg');
  client.socket.write(big);
  client.socket.end('last');
  t.true(await client.until(({ ended }) => ended));
  t.true(client.received.equals(Buffer.concat([big, Buffer.from('last')])));
  client.socket.destroy();
});

test('cut resets open connections and accepts new ones', async (t) => {
  const { proxy } = await echo(t);
  const client = new Client(proxy.port);
  client.socket.write('one');
  t.true(await client.until(got('one')));
  t.is(proxy.connections, 1);
  proxy.cut();
  t.true(await client.until(({ closed }) => closed));
  t.is(client.error, 'ECONNRESET');
  const next = new Client(proxy.port);
  next.socket.write('two');
  t.true(await next.until(got('two')));
  next.socket.destroy();
});

test('a black hole forwards nothing without closing, and delivers retained bytes after heal', async (t) => {
  const { proxy } = await echo(t);
  const client = new Client(proxy.port);
  client.socket.write('one');
  t.true(await client.until(got('one')));
  proxy.blackHole();
  client.socket.end('two');
  const late = new Client(proxy.port);
  late.socket.write('three');
  t.false(await client.until(({ received, ended, closed }) => received.length > 3 || ended || closed, 150));
  t.false(await late.until(({ received, closed }) => received.length > 0 || closed, 50));
  proxy.heal();
  t.true(await client.until(({ ended }) => ended));
  t.is(client.received.toString(), 'onetwo');
  t.true(await late.until(got('three')));
  client.socket.destroy();
  late.socket.destroy();
});

test('one direction can be interrupted alone: the server receives data, the client does not', async (t) => {
  const { proxy, sockets } = await echo(t);
  const client = new Client(proxy.port);
  client.socket.write('one');
  t.true(await client.until(got('one')));
  proxy.blackHole('down');
  const [server] = sockets;
  const arrived = once(server as Socket, 'data');
  client.socket.write('two');
  t.is(String((await arrived)[0]), 'two');
  t.false(await client.until(({ received }) => received.length > 3, 100));
  proxy.heal();
  t.true(await client.until(got('onetwo')));
  client.socket.destroy();
});

test('delay with jitter keeps the order and lasts at least the configured time', async (t) => {
  const { proxy } = await echo(t);
  proxy.delay(60, 40);
  const client = new Client(proxy.port);
  const began = performance.now();
  for (let i = 0; i < 10; i++) {
    client.socket.write(String(i));
    await new Promise((resolve) => setImmediate(resolve));
  }
  t.true(await client.until(got('0123456789')));
  t.true(performance.now() - began >= 118, 'two ways of sixty milliseconds each');
  client.socket.destroy();
});

test('throttle limits the rate, down to single bytes', async (t) => {
  const { proxy } = await echo(t);
  proxy.throttle(20_000, 'down');
  const client = new Client(proxy.port);
  const began = performance.now();
  client.socket.write(Buffer.alloc(6000, 'x'));
  t.true(await client.until(({ received }) => received.length === 6000));
  const took = performance.now() - began;
  t.true(took > 200, `${took} ms`);
  proxy.throttle(10, 'down');
  client.socket.write('0123456789');
  t.true(await client.until(({ received }) => received.length > 6000));
  t.true(client.received.length < 6010);
  client.socket.destroy();
});

test('a reset after a number of bytes interrupts a stream there', async (t) => {
  const { proxy } = await echo(t);
  const client = new Client(proxy.port);
  proxy.resetAfter(100_000);
  client.socket.write(Buffer.alloc(1_000_000, 'x'));
  t.true(await client.until(({ closed }) => closed));
  t.is(client.error, 'ECONNRESET');
  t.true(client.received.length < 1_000_000);
});

test('refused connections are reset at once', async (t) => {
  const { proxy } = await echo(t);
  proxy.refuse(true);
  const client = new Client(proxy.port);
  t.true(await client.until(({ closed }) => closed));
  proxy.heal();
  const next = new Client(proxy.port);
  next.socket.write('hello');
  t.true(await next.until(got('hello')));
  next.socket.destroy();
});

test('new connections use a changed target, and are reset when no server listens there', async (t) => {
  const { proxy } = await echo(t);
  const other = await echo(t);
  const gone = createServer().listen(0, '127.0.0.1');
  await once(gone, 'listening');
  const { port } = gone.address() as AddressInfo;
  gone.close();
  proxy.retarget({ host: '127.0.0.1', port });
  const refused = new Client(proxy.port);
  t.true(await refused.until(({ closed }) => closed));
  proxy.retarget({ host: '127.0.0.1', port: other.proxy.port });
  const client = new Client(proxy.port);
  client.socket.write('through two');
  t.true(await client.until(got('through two')));
  t.is(other.sockets.size, 1);
  client.socket.destroy();
});
