import { readdir, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { ApiClient, KindDefinition, KubeObject } from '@keelson/core';
import { UsageError } from '@keelson/core/internal';
import { FakeClock } from '@keelson/core/runtime';
import type { ConfigMap, Node } from '@keelson/kinds';
import { listeningLogger, temporaryDirectory, until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { bootConfig, maxTrialStarts } from '../../../src/startup/dynamic/boot-config.ts';
import { ConfigWatch } from '../../../src/startup/dynamic/config-watch.ts';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';

const facts = { hostname: () => 'n1', fileExists: () => false };
const gate = '--feature-gates=DynamicAgentConfig=true';
const document = (text: string) => `apiVersion: agentconfig/v1alpha1\nkind: AgentConfiguration\n${text}\n`;

const periodMs = 10_000;

/** Counts the polls that have ended: each schedules the next. */
class LookClock extends FakeClock {
  polls = 0;

  override after(ms: number, callback: () => void): () => void {
    if (ms === periodMs) this.polls += 1;
    return super.after(ms, callback);
  }
}

/** A machine whose agent is restarted, and an API server with its node and config maps. */
async function machine(t: ExecutionContext, words: readonly string[] = []) {
  const dir = join(await temporaryDirectory(t), 'dynamic');
  const node: { spec: { configSource?: object } } = { spec: {} };
  const maps = new Map<string, ConfigMap>();
  const get = async (kind: string, name: string): Promise<KubeObject> => {
    const found = kind === 'Node' ? (node as Node) : maps.get(name);
    if (found === undefined) throw new Error(`${name} not found`);
    return found;
  };
  const resource = ({ kind }: KindDefinition) => {
    const client = { get: (name: string) => get(kind, name), namespace: () => client };
    return client;
  };
  const commandLine = parseOptions([`--dynamic-config-dir=${dir}`, gate, '--clusterconfig=/k', ...words]);

  /** One start of the agent. */
  async function start() {
    const clock = new LookClock();
    const logger = listeningLogger();
    const { resolved, dynamic } = await bootConfig({ commandLine, facts, logger });
    if (dynamic === undefined) throw new Error('there is no dynamic configuration');
    const api = { resource } as unknown as Pick<ApiClient, 'resource'>;
    const watch = new ConfigWatch({ dynamic, api, nodeName: 'n1', clock, logger, random: () => 0.5 });
    let ended = false;
    void watch.restart.then(() => {
      ended = true;
    });
    watch.start();
    t.teardown(() => watch.stop());
    return {
      resolved,
      watch,
      clock,
      logger,
      ended: () => ended,
      /** Advances the clock by one poll, and waits until its effects are complete. */
      async poll() {
        await until(() => clock.polls > 0);
        const before = clock.polls;
        clock.advance(periodMs);
        await until(() => clock.polls > before);
      },
      /** Waits until the agent requests a restart, and stops it. */
      async end() {
        await until(() => clock.polls > 0);
        if (!ended) clock.advance(periodMs);
        await until(() => ended);
        await watch.stop();
      },
      stop: () => watch.stop(),
    };
  }

  return {
    dir,
    start,
    put(name: string, text: string, resourceVersion = '1') {
      maps.set(name, { metadata: { name, uid: `uid-${name}`, resourceVersion }, data: { agent: text } } as ConfigMap);
    },
    assign(name: string | undefined, more: object = {}) {
      if (name === undefined) delete node.spec.configSource;
      else
        node.spec.configSource = { configMap: { namespace: 'kube-system', name, kubeletConfigKey: 'agent', ...more } };
    },
  };
}

const trialMs = 600_000;

test('--dynamic-config-dir: the next start uses the assigned configuration, below the command line', async (t) => {
  const { start, put, assign, dir } = await machine(t, ['--max-pods=9']);
  const first = await start();
  await first.poll();
  t.is(first.resolved.config.syncMs, 60_000);
  t.like(first.watch.condition(), { type: 'ConfigOK', status: 'True', reason: 'LocalConfig' });
  put('one', document('syncFrequency: 7s\nmaxPods: 3\nfeatureGates: {MountPropagation: true}'));
  assign('one');
  await first.end();
  const second = await start();
  t.is(second.resolved.config.syncMs, 7_000);
  t.is(second.resolved.config.limits.maxPods, 9);
  t.true(second.resolved.config.gates['MountPropagation']);
  t.deepEqual(second.watch.condition(), {
    type: 'ConfigOK',
    status: 'True',
    reason: 'AssignedConfig',
    message: 'using config map kube-system/one, key agent (uid uid-one, resourceVersion 1), on trial',
  });
  await second.poll();
  t.false(second.ended(), 'the assigned configuration is in use');
  t.deepEqual(await readdir(join(dir, 'checkpoints')), ['uid-one_1_agent']);
  put('one', document('syncFrequency: 8s'), '2');
  await second.end();
  const third = await start();
  t.is(third.resolved.config.syncMs, 8_000, 'a config map that changed is another configuration');
  t.deepEqual(await readdir(join(dir, 'checkpoints')), ['uid-one_2_agent'], 'the old one was never known to be good');
  assign(undefined);
  await third.end();
  const last = await start();
  t.is(last.resolved.config.syncMs, 60_000);
  t.deepEqual(await readdir(join(dir, 'checkpoints')), []);
});

test('an invalid configuration is rejected while the agent runs, and the condition reports it', async (t) => {
  const { start, put, assign } = await machine(t);
  put('bad', document('syncFrequency: never'));
  assign('bad');
  const agent = await start();
  await agent.poll();
  t.false(agent.ended());
  const { status, reason, message } = agent.watch.condition();
  t.deepEqual([status, reason], ['False', 'ConfigRefused']);
  t.regex(
    message ?? '',
    /^using the local configuration; not config map kube-system\/bad, .*: syncFrequency must be a duration/,
  );
  t.is(agent.logger.lines.length, 1, 'it is checked once');
  put('bad', document('dynamicConfigDir: /elsewhere'), '2');
  await agent.poll();
  t.regex(agent.watch.condition().message ?? '', /dynamicConfigDir cannot be downloaded/);
  put('bad', document('syncFrequency: 5s'), '3');
  await agent.end();
  t.is((await start()).resolved.config.syncMs, 5_000, 'a better one is taken');
});

test('a configuration is known good after ten minutes, and replaces later ones that are invalid', async (t) => {
  const { start, put, assign, dir } = await machine(t);
  put('good', document('syncFrequency: 5s'));
  assign('good');
  await (await start()).end();
  const trial = await start();
  trial.clock.advance(trialMs - 30_000);
  await trial.poll();
  t.regex(trial.watch.condition().message ?? '', /on trial$/);
  trial.clock.advance(30_000);
  await until(() => !trial.watch.condition().message?.includes('on trial'));
  await trial.poll();
  put('next', document('syncFrequency: 6s'));
  assign('next');
  await trial.end();
  t.is((await readdir(join(dir, 'checkpoints'))).length, 2);
  // The file is damaged, or was written for another version of the agent.
  await writeFile(join(dir, 'checkpoints', 'uid-next_1_agent'), document('noSuchField: 1'));
  const back = await start();
  t.is(back.resolved.config.syncMs, 5_000);
  const { status, message } = back.watch.condition();
  t.is(status, 'False');
  t.regex(
    message ?? '',
    /^using config map kube-system\/good.*; not config map kube-system\/next.*: .*unknown key noSuchField/,
  );
  await back.poll();
  t.false(back.ended(), 'what was refused is not taken again');
  assign('good');
  await back.poll();
  t.like(back.watch.condition(), { status: 'True', reason: 'AssignedConfig' });
});

test('a configuration that never passes its trial is replaced by the local one when none is good', async (t) => {
  const { start, put, assign } = await machine(t);
  put('fatal', document('syncFrequency: 5s'));
  assign('fatal');
  await (await start()).end();
  for (let count = 1; count <= maxTrialStarts; count += 1) {
    const agent = await start();
    t.is(agent.resolved.config.syncMs, 5_000, `start ${count}`);
    await agent.stop();
  }
  const last = await start();
  t.is(last.resolved.config.syncMs, 60_000);
  t.regex(last.watch.condition().message ?? '', /did not pass its trial in 10 starts$/);
});

test('many valid and invalid updates: each valid one is used, and only needed texts are stored', async (t) => {
  const { start, put, assign, dir } = await machine(t);
  assign('one');
  put('one', document('syncFrequency: 100s'), '0');
  await (await start()).end();
  let agent = await start();
  for (let version = 1; version <= 12; version += 1) {
    const before = agent.resolved.config.syncMs;
    const good = version % 3 !== 0;
    put('one', document(good ? `syncFrequency: ${version}s` : 'syncFrequency: 0s'), String(version));
    if (!good) {
      await agent.poll();
      t.is(agent.watch.condition().reason, 'ConfigRefused');
      t.is(agent.resolved.config.syncMs, before);
      continue;
    }
    await agent.end();
    agent = await start();
    t.is(agent.resolved.config.syncMs, version * 1000);
    t.is(agent.watch.condition().status, 'True');
    t.is((await readdir(join(dir, 'checkpoints'))).length, 1);
  }
});

test('the same text in another version needs no restart', async (t) => {
  const { start, put, assign } = await machine(t);
  put('one', document('syncFrequency: 5s'));
  assign('one');
  await (await start()).end();
  const agent = await start();
  put('one', document('syncFrequency: 5s'), '2');
  await agent.poll();
  t.false(agent.ended());
  t.regex(agent.watch.condition().message ?? '', /resourceVersion 2/);
  await agent.stop();
  t.is((await start()).resolved.config.syncMs, 5_000);
});

test('a ConfigMap that is missing, has another UID or lacks the key is reported and changes nothing', async (t) => {
  const { start, put, assign } = await machine(t);
  const agent = await start();
  for (const [name, more, message] of [
    ['none', {}, /config map kube-system\/none cannot be read: none not found$/],
    ['one', { uid: 'other' }, /has the uid uid-one, not other$/],
    ['one', { kubeletConfigKey: 'nope' }, /has no key nope$/],
    ['one', { kubeletConfigKey: '' }, /needs namespace, name and kubeletConfigKey$/],
  ] as const) {
    put('one', document('syncFrequency: 5s'));
    assign(name, more);
    await agent.poll();
    const condition = agent.watch.condition();
    t.like(condition, { status: 'False', reason: 'ConfigNotFound' });
    t.regex(condition.message ?? '', message);
  }
  t.false(agent.ended());
  assign(undefined);
  await agent.poll();
  t.is(agent.watch.condition().status, 'True');
});

test('an invalid state file is discarded with a warning', async (t) => {
  const { start, put, assign, dir } = await machine(t);
  put('one', document('syncFrequency: 5s'));
  assign('one');
  await (await start()).end();
  for (const text of ['{', '{"current": {"uid": 1}}']) {
    await writeFile(join(dir, 'state.json'), text);
    const agent = await start();
    t.is(agent.resolved.config.syncMs, 60_000);
    t.is(agent.logger.lines.length, 1);
    await agent.stop();
  }
});

test('--dynamic-config-dir needs an API server and its gate, and has no effect with --runonce', async (t) => {
  const boot = (words: readonly string[]) =>
    bootConfig({ commandLine: parseOptions(words), facts, logger: listeningLogger() });
  await t.throwsAsync(boot(['--dynamic-config-dir=/x', gate]), {
    instanceOf: UsageError,
    message: /needs --clusterconfig/,
  });
  await t.throwsAsync(boot(['--dynamic-config-dir=/x', '--clusterconfig=/k']), { message: /DynamicAgentConfig=true/ });
  t.is((await boot(['--dynamic-config-dir=/x', gate, '--runonce', '--pod-manifest-path=/p'])).dynamic, undefined);
  t.is((await boot([])).dynamic, undefined);
});
