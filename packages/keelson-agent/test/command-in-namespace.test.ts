import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { chown, mkdir } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { missingForNamespaces, networkNamespace, temporaryDirectory, until } from '@keelson/test-support';
import anyTest, { type ExecutionContext } from 'ava';

const binary = fileURLToPath(new URL('../../dist/bundle/keelson-agent.js', import.meta.url));
const missing = missingForNamespaces();
const test = missing.length === 0 ? anyTest : anyTest.skip;
const needs = missing.length === 0 ? '' : ` (needs ${missing.join(', ')})`;

const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'];
/** Other users cannot run programs of a checkout in a private folder. */
const readable = missing.length === 0 && spawnSync('setpriv', [...nobody.slice(1), 'test', '-r', binary]).status === 0;
const testNobody = readable ? test : anyTest.skip;

interface Running {
  readonly child: ChildProcess;
  readonly ended: Promise<number | null>;
  /** Messages of the log, or other output. */
  lines(): string[];
}

/** The real command with a prefix; its packet filter is that of a network namespace, or none. */
function agent(t: ExecutionContext, launch: readonly string[], directory: string, words: readonly string[]): Running {
  const [program = process.execPath, ...rest] = [...launch, process.execPath, binary];
  const quiet = [
    '--address=127.0.0.1',
    '--port=0',
    '--read-only-port=0',
    '--healthz-port=0',
    '--stats-port=0',
    '--fail-swap-on=false',
  ];
  const places = [
    `--root-dir=${directory}/root`,
    `--cert-dir=${directory}/pki`,
    '--hostname-override=n1',
    '--eviction-hard=',
  ];
  const child = spawn(program, [...rest, ...quiet, ...places, ...words], {
    env: { ...process.env, KEELSON_AGENT_RUNTIME: 'process', KEELSON_AGENT_LOG_ROOT: join(directory, 'log') },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  t.teardown(() => child.kill('SIGKILL'));
  let text = '';
  child.stderr?.on('data', (chunk) => {
    text += String(chunk);
  });
  return {
    child,
    ended: new Promise((resolve) => child.once('close', resolve)),
    lines: () => text.split('\n').filter((line) => line !== ''),
  };
}

test(`keelson-agent as root maintains the chains of --make-iptables-util-chains${needs}`, async (t) => {
  t.timeout(120_000);
  const [directory, namespace] = [await temporaryDirectory(t), await networkNamespace(t)];
  const words = ['--make-iptables-util-chains', '--iptables-drop-bit=9', '--iptables-masquerade-bit=8'];
  const running = agent(t, namespace.launch, directory, words);
  let rules = '';
  while (!/FIREWALL .*0x200\/0x200/.test(rules) || !/KUBE-POSTROUTING .*0x100\/0x100/.test(rules)) {
    rules = await namespace.run('iptables-save');
    if (running.child.exitCode !== null) return t.fail(running.lines().join('\n'));
  }
  running.child.kill('SIGTERM');
  t.is(await running.ended, 0);
});

testNobody(
  `keelson-agent without privileges starts and warns once that it cannot maintain the chains${readable ? '' : ' (needs a checkout that others can read)'}`,
  async (t) => {
    t.timeout(120_000);
    const [directory, namespace] = [await temporaryDirectory(t), await networkNamespace(t)];
    for (const folder of [directory, join(directory, 'root')]) {
      await mkdir(folder, { recursive: true });
      await chown(folder, 65_534, 65_534);
    }
    const running = agent(t, [...namespace.launch, ...nobody], directory, []);
    const has = (text: string) => running.lines().filter((line) => line.includes(text)).length;
    await until(() => running.child.exitCode !== null || (has('agent started') > 0 && has('utility chains') > 0));
    t.is(running.child.exitCode, null, running.lines().join('\n'));
    t.is(has('utility chains of iptables could not be reconciled'), 1);
    running.child.kill('SIGTERM');
    t.is(await running.ended, 0, running.lines().join('\n'));
  },
);

for (const [words, message] of [
  [
    ['--network-plugin=cni'],
    /^keelson-agent: --network-plugin=cni needs a runtime whose pods have a network of their own/,
  ],
  [
    ['--cloud-provider=nowhere'],
    /^keelson-agent: --cloud-provider: unknown provider "nowhere"; use one of external, file$/,
  ],
] as const) {
  anyTest(`keelson-agent on the process runtime does not start with ${words.join(' ')}`, async (t) => {
    const running = agent(t, [], await temporaryDirectory(t), ['--make-iptables-util-chains=false', ...words]);
    t.is(await running.ended, 2);
    t.regex(running.lines().at(-1) ?? '', message);
  });
}
