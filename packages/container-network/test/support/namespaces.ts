import { execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { installPrograms } from '@keelson/test-support';
import type { ExecutionContext } from 'ava';
import type { NetworkRequest } from '../../src/index.ts';

const run = promisify(execFile);

/** Where Debian has them. */
export const binDirs = ['/usr/lib/cni'];

/** What is missing for networks of real plugins on this machine; empty when nothing is. */
export function missingHere(): readonly string[] {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return ['root on Linux'];
  // Plugins are in no folder of programs, but beside them.
  const programs = ['bash', 'ip', 'iptables', 'nsenter', '../lib/cni/bridge'];
  return installPrograms(programs, ['bash', 'containernetworking-plugins', 'iptables', 'iproute2', 'util-linux']);
}

/** A network namespace. */
export interface Namespace {
  readonly path: string;
  /** Runs a program in it; resolves with what it prints. */
  run(program: string, ...words: readonly string[]): Promise<string>;
  /** Answers each connection with the address it came from, until the test ends. */
  serve(port: number): Promise<void>;
  /** Receives datagrams; the function resolves with all of them when this one has arrived. */
  receive(port: number): Promise<(last: string) => Promise<string[]>>;
  /** The response of a server, or the code of the error. */
  ask(host: string, port: number): Promise<string>;
}

/** A node and what is around it: namespaces with nothing in them but a loopback interface. */
export interface Bench {
  readonly stateDirectory: string;
  readonly node: Namespace;
  /** Makes plugins see the node's namespace as theirs, and its interfaces in /sys. */
  readonly launch: readonly string[];
  namespace(name: string): Promise<Namespace>;
  /** A pod that is not connected yet. */
  pod(name: string): Promise<Namespace & { readonly request: NetworkRequest }>;
}

const server = `require('net').createServer((s) => s.on('error', () => {}).end(s.remoteAddress))
  .listen(Number(process.argv[1]), '0.0.0.0', () => console.log('ready'))`;
const receiver = `require('dgram').createSocket('udp4').on('message', (m) => console.log(String(m)))
  .bind(Number(process.argv[1]), () => console.log('ready'))`;
/** In bash, because a Node for each question takes 20 times the processor time. */
const client = 'exec 3<> "/dev/tcp/$0/$1" || exit; read -r answer <&3; echo "$answer"';

export async function openBench(t: ExecutionContext): Promise<Bench> {
  // Several test files run at once, in one process or in several.
  const prefix = `kn${randomBytes(4).toString('hex')}`;
  const stateDirectory = await mkdtemp(join(tmpdir(), 'keelson-net-'));
  t.teardown(() => rm(stateDirectory, { recursive: true, force: true }));
  const namespace = async (name: string): Promise<Namespace> => {
    const full = `${prefix}-${name}`;
    await run('ip', ['netns', 'add', full]);
    t.teardown(() => run('ip', ['netns', 'delete', full]).catch(() => {}));
    const path = `/run/netns/${full}`;
    const words = (program: string, rest: readonly string[]) => [`--net=${path}`, '--', program, ...rest];
    return {
      path,
      run: async (program, ...rest) => (await run('nsenter', words(program, rest))).stdout,
      async serve(port) {
        const child = spawn('nsenter', words(process.execPath, ['-e', server, String(port)]), {
          stdio: ['ignore', 'pipe', 'inherit'],
        });
        t.teardown(() => child.kill('SIGKILL'));
        await new Promise((resolve, reject) =>
          child.stdout.once('data', resolve).once('end', () => reject(new Error('no server'))),
        );
      },
      async receive(port) {
        const command = words(process.execPath, ['-e', receiver, String(port)]);
        const child = spawn('nsenter', command, { stdio: ['ignore', 'pipe', 'inherit'] });
        t.teardown(() => child.kill('SIGKILL'));
        let text = '';
        const until = async (line: string) => {
          while (!text.split('\n').includes(line)) await once(child.stdout, 'data');
        };
        child.stdout.on('data', (chunk) => {
          text += String(chunk);
        });
        await until('ready');
        return async (last) => {
          await until(last);
          return text.trim().split('\n').slice(1);
        };
      },
      ask: async (host, port) => {
        try {
          return (
            await run('nsenter', words('timeout', ['20', 'bash', '-c', client, host, String(port)]))
          ).stdout.trim();
        } catch (error) {
          if (String(error).includes('Connection refused')) return 'ECONNREFUSED';
          throw error;
        }
      },
    };
  };
  const node = await namespace('node');
  await node.run('ip', 'link', 'set', 'lo', 'up');
  return {
    stateDirectory,
    node,
    launch: ['ip', 'netns', 'exec', `${prefix}-node`],
    namespace,
    async pod(name) {
      const made = await namespace(name);
      return { ...made, request: { sandboxId: `${prefix}-${name}`, namespace: 'web', name, netnsPath: made.path } };
    },
  };
}
