import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect, createServer, type Server } from 'node:net';
import { join } from 'node:path';

/**
 * Program that runs in the other network namespace. It forwards connections from a port of the loopback interface there
 * to a socket file, which is accessible from every network namespace.
 */
const otherSide = `
const net = require('node:net');
const [, port, path] = process.argv;
net.createServer({ allowHalfOpen: true }, (from) => {
  const to = net.connect({ path, allowHalfOpen: true });
  from.pipe(to).pipe(from);
  for (const [one, other] of [[from, to], [to, from]]) one.on('error', () => other.destroy());
}).listen(Number(port), '127.0.0.1', () => console.log('ready'));
process.stdin.resume().on('end', () => process.exit());
`;

/** Makes a port of the machine's loopback interface reachable at the loopback interface of a network namespace. */
export class PodmanRelay implements AsyncDisposable {
  readonly #server: Server;
  readonly #child: ChildProcess;

  private constructor(server: Server, child: ChildProcess) {
    this.#server = server;
    this.#child = child;
  }

  static async open(folder: string, enter: readonly [string, ...string[]], port: number): Promise<PodmanRelay> {
    const path = join(folder, `relay-${port}.sock`);
    const server = createServer({ allowHalfOpen: true }, (from) => {
      const to = connect({ port, host: '127.0.0.1', allowHalfOpen: true });
      from.pipe(to).pipe(from);
      from.on('error', () => to.destroy());
      to.on('error', () => from.destroy());
    });
    await once(server.listen(path), 'listening');
    const [program, ...rest] = enter;
    const child = spawn(program, [...rest, process.execPath, '-e', otherSide, String(port), path], {
      stdio: ['pipe', 'pipe', 'inherit'],
    });
    child.stdin.on('error', () => {});
    await once(child.stdout, 'data');
    return new PodmanRelay(server, child);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const gone = once(this.#child, 'exit');
    this.#child.stdin?.end();
    if (this.#child.exitCode === null) await gone;
    this.#server.close();
  }
}
