import { spawn } from 'node:child_process';
import type { IncomingMessage } from 'node:http';
import { request } from 'node:https';
import { join } from 'node:path';
import type { Duplex } from 'node:stream';
import type { ProcessStreams, StreamRequest } from '@keelson/container-runtime';
import { SpdyClient } from '@keelson/container-streams';
import type { FakeClock } from '@keelson/core/runtime';
import type { ExecutionContext } from 'ava';
import { WebSocket } from 'ws';
import type { PodStreams } from '../../src/base/contracts/pod-streams.ts';
import { noStreams, openTestServers } from './test-servers.ts';

/** The path of a command in a container, with the requested streams. */
export function execPath(command: readonly string[], ...flags: string[]): string {
  const words = [...command.map((word) => `command=${encodeURIComponent(word)}`), ...flags.map((flag) => `${flag}=1`)];
  return `/exec/default/web/main?${words.join('&')}`;
}

/** A real process with its ends, as runtimes give them. */
export function spawned(command: readonly string[], { stdin, stdout, stderr }: StreamRequest): ProcessStreams {
  const [program = '', ...args] = command;
  const pipe = (wanted: boolean) => (wanted ? 'pipe' : 'ignore');
  const child = spawn(program, args, { stdio: [pipe(stdin), pipe(stdout), pipe(stderr)] });
  child.stdin?.on('error', () => {});
  return {
    ...(child.stdin && { stdin: child.stdin }),
    ...(child.stdout && { stdout: child.stdout }),
    ...(child.stderr && { stderr: child.stderr }),
    ended: new Promise((resolve, reject) => {
      child.on('error', reject);
      child.on('exit', (code) => resolve({ exitCode: code ?? 137 }));
    }),
    close: () => void child.kill('SIGKILL'),
  };
}

export interface StreamServer {
  readonly clock: FakeClock;
  readonly port: number;
  readonly directory: string;
  /** A WebSocket to a path, as a client that offers these protocols. @throws the response when it is no upgrade */
  webSocket(path: string, ...protocols: string[]): Promise<ChannelClient>;
  /** The same by SPDY. */
  spdy(path: string, ...protocols: string[]): Promise<SpdyClient>;
  /** An HTTP response. */
  ask(path: string, options?: { method?: string; headers?: Record<string, string> }): Promise<Answer>;
}

export interface Answer {
  readonly status: number;
  readonly headers: IncomingMessage['headers'];
  readonly body: string;
}

/** The main port of an agent whose pods are played by the test, under a clock that stands still. */
export async function openStreamServer(
  t: ExecutionContext,
  streams: Partial<PodStreams>,
  words: readonly string[] = [],
): Promise<StreamServer> {
  const { servers, clock, directory } = await openTestServers(t, words, (place) => ({
    streams: { ...noStreams, ...streams },
    logRoot: join(place.directory, 'log'),
  }));
  const port = servers.port ?? 0;
  const at = { host: '127.0.0.1', port, rejectUnauthorized: false, agent: false as const };
  const upgraded = (
    path: string,
    headers: Record<string, string>,
  ): Promise<{ response: IncomingMessage; socket: Duplex; head: Buffer }> =>
    new Promise((resolve, reject) => {
      const outgoing = request({ ...at, path, method: 'POST', headers: { Connection: 'Upgrade', ...headers } });
      outgoing.once('error', reject);
      outgoing.once('upgrade', (response, socket, head) => resolve({ response, socket, head }));
      outgoing.once('response', (response) => void refusal(response).then(reject, reject));
      outgoing.end();
    });
  return {
    clock,
    port,
    directory,
    async webSocket(path, ...protocols) {
      const socket = new WebSocket(`wss://127.0.0.1:${port}${path}`, protocols, { rejectUnauthorized: false });
      t.teardown(() => socket.terminate());
      const client = new ChannelClient(socket);
      await new Promise<void>((resolve, reject) => {
        socket.once('open', resolve);
        socket.once('error', reject);
        socket.once(
          'unexpected-response',
          (_, response: IncomingMessage) => void refusal(response).then(reject, reject),
        );
      });
      return client;
    },
    async spdy(path, ...protocols) {
      const offered = protocols.length === 0 ? {} : { 'X-Stream-Protocol-Version': protocols.join(', ') };
      const { response, socket, head } = await upgraded(path, { Upgrade: 'SPDY/3.1', ...offered });
      t.teardown(() => void socket.destroy());
      return new SpdyClient(socket, head, response.headers['x-stream-protocol-version'] as string | undefined);
    },
    ask: (path, options = {}) =>
      new Promise((resolve, reject) => {
        const outgoing = request(
          { ...at, path, ...options },
          (response) => void answerOf(response).then(resolve, reject),
        );
        outgoing.once('error', reject);
        outgoing.end();
      }),
  };
}

async function refusal(response: IncomingMessage): Promise<Error> {
  const { status, body } = await answerOf(response);
  return new Error(`${status} ${body}`);
}

async function answerOf(response: IncomingMessage): Promise<Answer> {
  const chunks: Buffer[] = [];
  for await (const chunk of response) chunks.push(chunk as Buffer);
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    body: Buffer.concat(chunks).toString().trimEnd(),
  };
}

/** A client that remembers what came on each channel. */
export class ChannelClient {
  readonly socket: WebSocket;
  readonly messages: { readonly channel: number; readonly content: Buffer }[] = [];
  readonly closed: Promise<number>;

  constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('error', () => {});
    socket.on('message', (data: Buffer, isBinary) => {
      const content = isBinary ? data.subarray(1) : Buffer.from(data.toString('latin1', 1), 'base64');
      this.messages.push({ channel: (data[0] ?? 0) - (isBinary ? 0 : 0x30), content });
    });
    this.closed = new Promise((resolve) => socket.once('close', resolve));
  }

  /** All that came on a channel. */
  bytes(channel: number): Buffer {
    return Buffer.concat(this.messages.filter((one) => one.channel === channel).map(({ content }) => content));
  }

  text(channel: number): string {
    return this.bytes(channel).toString();
  }

  send(channel: number, content: string | Buffer): void {
    if (this.socket.protocol.includes('base64'))
      this.socket.send(`${channel}${Buffer.from(content).toString('base64')}`);
    else this.socket.send(Buffer.concat([Buffer.of(channel), Buffer.from(content)]));
  }
}
