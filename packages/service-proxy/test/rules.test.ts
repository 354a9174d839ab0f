import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { silentLogger, systemClock } from '@keelson/core/runtime';
import { EndpointSlice } from '@keelson/kinds';
import { missingForNamespaces, networkNamespace, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { ServiceRules } from '../src/index.ts';
import type { RuleHost } from '../src/rules/service-rules.ts';
import { addService, type Cluster, cluster } from './support/cluster.ts';

async function start(t: ExecutionContext, { table }: Cluster, host: RuleHost): Promise<ServiceRules> {
  const directory = await mkdtemp(join(tmpdir(), 'keelson-rules-'));
  t.teardown(() => rm(directory, { recursive: true }));
  const rules = new ServiceRules({
    ...{ table, host, directory, clock: systemClock, logger: silentLogger },
    localNodes: () => new Set(['here']),
  });
  t.teardown(() => rules.stop());
  await rules.start();
  return rules;
}

async function addServices(here: Cluster): Promise<void> {
  await addService(
    here,
    'web',
    {
      clusterIP: '10.96.0.5',
      externalIPs: ['198.051.100.7'],
      type: 'NodePort',
      sessionAffinity: 'ClientIP',
      ports: [{ port: 80, nodePort: 30_080 }],
    },
    [
      { port: 8080, addresses: ['192.0.02.1'], nodeName: 'here' },
      { port: 8080, addresses: ['192.0.2.2'], nodeName: 'there' },
    ],
  );
  await addService(
    here,
    'dns',
    { clusterIP: '10.96.0.10', internalTrafficPolicy: 'Local', ports: [{ port: 53, protocol: 'UDP' }] },
    [
      { port: 5353, protocol: 'UDP', addresses: ['192.0.2.1'], nodeName: 'here' },
      { port: 5353, protocol: 'UDP', addresses: ['192.0.2.2'], nodeName: 'there' },
    ],
  );
  await addService(here, 'empty', { clusterIP: '10.96.0.6', ports: [{ port: 80 }] }, []);
}

test('rules forward addresses and node ports to the endpoints, and reject services without endpoints', async (t) => {
  const here = await cluster(t);
  await addServices(here);
  const texts: string[] = [];
  const calls: string[] = [];
  const host: RuleHost = {
    async run(program, words) {
      calls.push([program, ...words].join(' '));
      if (program === 'iptables-restore') texts.push(await readFile(words.at(-1) ?? '', 'utf8'));
      return { code: words.includes('-C') ? 1 : 0, stdout: '', stderr: '' };
    },
  };
  await until(() => [...here.table.services()].length === 3);
  await start(t, here, host);
  await until(() => texts.at(-1)?.includes('192.0.2.2:8080'));
  const text = texts.at(-1) ?? '';
  const expected = [
    /^-A KEELSON-REJECT -d 10\.96\.0\.6\/32 -p tcp .* --dport 80 -j REJECT$/m,
    /^-A KEELSON-SERVICES -d 10\.96\.0\.5\/32 -p tcp -m comment --comment "default\/web" -m tcp --dport 80 -j KEELSON-SVC-/m,
    /^-A KEELSON-SERVICES -d 198\.51\.100\.7\/32 -p tcp .* --dport 80 -j KEELSON-MARK$/m,
    /^-A KEELSON-SERVICES -d 198\.51\.100\.7\/32 -p tcp .* --dport 80 -j KEELSON-SVC-/m,
    /^-A KEELSON-NODEPORTS -p tcp .* --dport 30080 -j KEELSON-MARK$/m,
    /^-A KEELSON-SVC-\w+ -m recent --name KEELSON-SEP-\w+ --rcheck --seconds 10800 --reap -j KEELSON-SEP-/m,
    /^-A KEELSON-SVC-\w+ -m statistic --mode random --probability 0\.5000000000 -j KEELSON-SEP-/m,
    /^-A KEELSON-SEP-\w+ -s 192\.0\.2\.1\/32 -j KEELSON-MARK$/m,
    /^-A KEELSON-SEP-\w+ -p udp -m udp -j DNAT --to-destination 192\.0\.2\.1:5353$/m,
  ];
  for (const rule of expected) t.regex(text, rule);
  t.false(text.includes('192.0.2.2:5353'), 'the policy Local leaves endpoints of other nodes out');
  t.is(calls.filter((call) => call.includes(' -I ')).length % 5, 0, 'the jumps are added');
  const gone = /:(KEELSON-SVC-\w+)/.exec(text)?.[1] ?? '';
  const slices = here.api.resource(EndpointSlice).namespace('default');
  for (const name of ['web-0', 'web-1', 'dns-0', 'dns-1']) await slices.delete(name);
  await until(() => texts.some((one) => one.includes(`-X ${gone}`)));
  t.false(texts.at(-1)?.includes('DNAT'));
});

const missing = missingForNamespaces();
const inNamespace = missing.length === 0 ? test : test.skip;

inNamespace(
  `the kernel accepts the rules and translates connections, and the rules are removed afterwards ${missing.join()}`,
  async (t) => {
    const space = await networkNamespace(t);
    const host: RuleHost = {
      run: (program, words) =>
        new Promise((resolve, reject) => {
          const [first = '', ...rest] = [...space.launch, program, ...words];
          execFile(first, rest, (error, stdout, stderr) => {
            if (error !== null && typeof error.code !== 'number') reject(error);
            else resolve({ code: typeof error?.code === 'number' ? error.code : 0, stdout, stderr });
          });
        }),
    };
    await space.run('ip', 'address', 'add', '192.0.2.1/24', 'dev', 'lo');
    await space.run('ip', 'route', 'add', '10.96.0.0/16', 'dev', 'lo');
    const here = await cluster(t);
    await addService(
      here,
      'web',
      {
        clusterIP: '10.96.0.5',
        type: 'NodePort',
        sessionAffinity: 'ClientIP',
        ports: [{ port: 80, nodePort: 30_080 }],
      },
      [{ port: 8080, addresses: ['192.0.2.1'] }],
    );
    const rules = await start(t, here, host);
    const program = `
    const { createServer, connect } = require('node:net');
    const ask = (host, port) => new Promise((resolve) => {
      let all = '';
      connect({ host, port }).on('data', (data) => { all += data; })
        .on('error', (error) => resolve(error.code)).on('end', () => resolve(all));
    });
    createServer((socket) => socket.end('pod')).listen(8080, '192.0.2.1', async () => {
      console.log(await ask('10.96.0.5', 80), await ask('192.0.2.1', 30080));
      process.exit();
    });`;
    await until(async () => (await space.run('iptables-save', '-t', 'nat')).includes('192.0.2.1:8080'));
    t.is((await space.run(process.execPath, '-e', program)).trim(), 'pod pod');
    await rules.stop();
    t.false((await space.run('iptables-save')).includes('KEELSON'));
  },
);
