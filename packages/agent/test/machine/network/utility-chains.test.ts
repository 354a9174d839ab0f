import { FakeClock } from '@keelson/core/runtime';
import { listeningLogger, missingForNamespaces, networkNamespace, until } from '@keelson/test-support';
import anyTest, { type ExecutionContext } from 'ava';
import { type HostActions, systemHost } from '../../../src/machine/network/host-actions.ts';
import { markOf, UtilityChains } from '../../../src/machine/network/utility-chains.ts';
import { wordsConfig } from '../../support/bench.ts';

const missing = missingForNamespaces();
const test = missing.length === 0 ? anyTest : anyTest.skip;
const needs = missing.length === 0 ? '' : ` (needs ${missing.join(', ')})`;

/** Chains under these options; `round` advances the clock by a minute and waits until its commands have been run. */
function keep(t: ExecutionContext, host: HostActions, words: readonly string[] = []) {
  const clock = new FakeClock();
  const logger = listeningLogger();
  const events: string[] = [];
  let commands = 0;
  let running = 0;
  const counting: HostActions = {
    async run(...call) {
      commands += 1;
      running += 1;
      try {
        return await host.run(...call);
      } finally {
        running -= 1;
      }
    },
  };
  const chains = new UtilityChains({
    host: counting,
    config: wordsConfig('/x', words).network,
    nodeName: 'node-1',
    periodMs: 60_000,
    events: {
      record: (subject, type, reason, message) => events.push(`${subject.kind} ${type} ${reason}: ${message}`),
    },
    clock,
    logger,
  });
  t.teardown(() => chains.stop());
  const settled = async () => {
    let calm = 0;
    await until(() => {
      calm = running === 0 ? calm + 1 : 0;
      return commands > 0 && calm > 20;
    });
  };
  return {
    chains,
    logger,
    events,
    async begin() {
      chains.start();
      await settled();
    },
    async round() {
      commands = 0;
      clock.advance(60_000);
      await settled();
    },
  };
}

const saved = async (run: (program: string, ...words: string[]) => Promise<string>, table: string) =>
  (await run('iptables', '-t', table, '-S')).split('\n').filter((line) => line.includes('KUBE-'));

test(`chains for marks are created with the bits of the options, and no rule is duplicated${needs}`, async (t) => {
  t.timeout(120_000);
  const namespace = await networkNamespace(t);
  await namespace.run('iptables', '-A', 'OUTPUT', '-j', 'ACCEPT');
  const kept = keep(t, systemHost(namespace.launch));
  await kept.begin();
  const nat = [
    '-N KUBE-MARK-DROP',
    '-N KUBE-MARK-MASQ',
    '-N KUBE-POSTROUTING',
    '-A POSTROUTING -m comment --comment "kubernetes postrouting rules" -j KUBE-POSTROUTING',
    '-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000',
    '-A KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/0x4000',
    '-A KUBE-POSTROUTING -m comment --comment "kubernetes service traffic requiring SNAT" -m mark --mark 0x4000/0x4000 -j MASQUERADE',
  ];
  const filter = [
    '-N KUBE-FIREWALL',
    '-A INPUT -j KUBE-FIREWALL',
    '-A OUTPUT -j KUBE-FIREWALL',
    '-A KUBE-FIREWALL -m comment --comment "kubernetes firewall for dropping marked packets" -m mark --mark 0x8000/0x8000 -j DROP',
  ];
  t.deepEqual(await saved(namespace.run, 'nat'), nat);
  t.deepEqual(await saved(namespace.run, 'filter'), filter);
  const output = (await namespace.run('iptables', '-S', 'OUTPUT')).trim().split('\n');
  t.is(output[1], '-A OUTPUT -j KUBE-FIREWALL', 'before what was there');
  const isChange = (message: string) => message === 'the packet filter was changed';
  t.is(kept.logger.infos.filter(isChange).length, 11, 'each chain and rule is logged');
  await kept.round();
  t.is(kept.logger.infos.filter(isChange).length, 11, 'as often as it is made');
  t.deepEqual(await saved(namespace.run, 'nat'), nat);
  t.deepEqual(await saved(namespace.run, 'filter'), filter);
  t.deepEqual([kept.logger.lines, kept.events], [[], []]);
  await kept.chains.stop();
  t.deepEqual(await saved(namespace.run, 'nat'), nat, 'they stay for those who use them');
});

test(`removed rules are restored within a minute, and rules of other programs are kept${needs}`, async (t) => {
  t.timeout(120_000);
  const namespace = await networkNamespace(t);
  const kept = keep(t, systemHost(namespace.launch));
  await kept.begin();
  await namespace.run('iptables', '-D', 'INPUT', '-j', 'KUBE-FIREWALL');
  await namespace.run('iptables', '-t', 'nat', '-F', 'KUBE-MARK-DROP');
  const others = ['-A', 'KUBE-POSTROUTING', '-s', '10.1.2.3/32', '-j', 'RETURN'];
  await namespace.run('iptables', '-t', 'nat', ...others);
  await kept.round();
  t.true((await saved(namespace.run, 'filter')).includes('-A INPUT -j KUBE-FIREWALL'));
  const nat = await saved(namespace.run, 'nat');
  t.true(nat.includes('-A KUBE-MARK-DROP -j MARK --set-xmark 0x8000/0x8000'));
  t.true(nat.includes(others.join(' ')));
});

test(`--iptables-drop-bit and --iptables-masquerade-bit: other bits replace those of the previous agent${needs}`, async (t) => {
  t.timeout(120_000);
  const namespace = await networkNamespace(t);
  const first = keep(t, systemHost(namespace.launch));
  await first.begin();
  await first.chains.stop();
  const second = keep(t, systemHost(namespace.launch), ['--iptables-drop-bit=31', '--iptables-masquerade-bit=0']);
  await second.begin();
  const rules = [...(await saved(namespace.run, 'nat')), ...(await saved(namespace.run, 'filter'))].join('\n');
  t.is(rules.match(/0x80000000\/0x80000000/g)?.length, 2);
  t.is(rules.match(/0x1\/0x1/g)?.length, 2);
  t.notRegex(rules, /0x8000\/|0x4000\//);
  // A proxy with the old bit starts later: both rules remain, instead of being removed and restored repeatedly.
  await namespace.run('iptables', '-t', 'nat', '-A', 'KUBE-MARK-MASQ', '-j', 'MARK', '--set-xmark', '0x4000/0x4000');
  await second.round();
  t.regex((await saved(namespace.run, 'nat')).join('\n'), /KUBE-MARK-MASQ -j MARK --set-xmark 0x4000/);
});

test(`marked packets are dropped, others are not${needs}`, async (t) => {
  t.timeout(120_000);
  const namespace = await networkNamespace(t);
  const kept = keep(t, systemHost(namespace.launch));
  await kept.begin();
  const script = `const s = require('net').createServer((c) => c.end()).listen(0, '127.0.0.1', () => {
    const c = require('net').connect({ host: '127.0.0.1', port: Number(process.argv[1]) || s.address().port });
    c.setTimeout(500, () => { console.log('silence'); process.exit(); });
    c.on('connect', () => { console.log('connected'); process.exit(); }).on('error', (e) => { console.log(e.code); process.exit(); });
  })`;
  t.is((await namespace.run(process.execPath, '-e', script)).trim(), 'connected');
  t.is((await namespace.run(process.execPath, '-e', script, '7')).trim(), 'ECONNREFUSED');
  await namespace.run('iptables', '-t', 'nat', '-A', 'OUTPUT', '-p', 'tcp', '--dport', '7', '-j', 'KUBE-MARK-DROP');
  t.is((await namespace.run(process.execPath, '-e', script, '7')).trim(), 'silence');
});

test(`an agent without permission to change the packet filter warns once${needs}`, async (t) => {
  t.timeout(120_000);
  const namespace = await networkNamespace(t);
  const nobody = ['setpriv', '--reuid=65534', '--regid=65534', '--clear-groups', '--inh-caps=-all'];
  const kept = keep(t, systemHost([...namespace.launch, ...nobody]));
  await kept.begin();
  await kept.round();
  t.is(kept.logger.lines.length, 1);
  t.regex(
    String(kept.logger.lines[0]?.fields['problem']),
    /^iptables rejected the chain KUBE-MARK-DROP \(exit \d+\): .*(root|denied)/,
  );
  t.deepEqual(kept.events.length, 1);
});

anyTest('missing iptables causes one warning and one event, and again after it has been available', async (t) => {
  let broken = true;
  const host: HostActions = {
    async run(program) {
      if (broken) throw Object.assign(new Error(`spawn ${program} ENOENT`), { code: 'ENOENT' });
      return { code: 0, stdout: '', stderr: '' };
    },
  };
  const kept = keep(t, host);
  await kept.begin();
  await kept.round();
  const problem = 'iptables is not installed on this machine';
  t.deepEqual(
    kept.logger.lines.map(({ message, fields }) => [message, fields['problem']]),
    [['utility chains of iptables could not be reconciled', problem]],
  );
  t.deepEqual(kept.events, [
    `Node Warning UtilityChainsNotKept: Utility chains of iptables could not be reconciled: ${problem}`,
  ]);
  broken = false;
  await kept.round();
  broken = true;
  await kept.round();
  t.is(kept.events.length, 2);
});

anyTest('the mark of a bit consists of a value and a mask with that bit', (t) => {
  t.deepEqual([0, 14, 15, 31].map(markOf), ['0x1/0x1', '0x4000/0x4000', '0x8000/0x8000', '0x80000000/0x80000000']);
});
