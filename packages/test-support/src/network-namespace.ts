import { execFile } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { promisify } from 'node:util';
import { installPrograms } from './debian-packages.ts';

const run = promisify(execFile);

/** What is missing on this machine for tests in network namespaces; empty when nothing is. */
export function missingForNamespaces(...more: readonly string[]): readonly string[] {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return ['root on Linux'];
  return installPrograms(
    ['ip', 'iptables', 'nsenter', ...more],
    ['iptables', 'iproute2', 'util-linux', 'containernetworking-plugins'],
  );
}

export interface NetworkNamespace {
  readonly name: string;
  readonly path: string;
  /** The beginning of a command line that runs a program in the namespace, with its interfaces in /sys. */
  readonly launch: readonly string[];
  /** Runs a program in the namespace; resolves with its output. */
  run(program: string, ...words: readonly string[]): Promise<string>;
}

/** A network namespace with only a loopback interface; removed at the end of the test. */
export async function networkNamespace(t: { teardown(action: () => unknown): void }): Promise<NetworkNamespace> {
  // Several test files run at once, in one process or in several.
  const name = `ka-${randomBytes(5).toString('hex')}`;
  await run('ip', ['netns', 'add', name]);
  t.teardown(() => run('ip', ['netns', 'delete', name]));
  const launch = ['ip', 'netns', 'exec', name];
  const [first = '', ...rest] = launch;
  await run('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
  return {
    name,
    path: `/run/netns/${name}`,
    launch,
    run: async (program, ...words) => (await run(first, [...rest, program, ...words])).stdout,
  };
}
