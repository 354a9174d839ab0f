import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { quantityMilliValue, quantityValue } from '@keelson/core';
import { ConfigMap, type coreV1, Node, Pod, Secret, Service } from '@keelson/kinds';
import { eventually } from '@keelson/testing';
import test, { type ExecutionContext } from 'ava';
import { environmentCases } from '../../src/agent-scenarios/environment-cases.ts';
import { nodeName, type Stage, sharedStage, shell, stay, waitMs } from '../../src/agent-scenarios/stage.ts';
import { base64, configMaps, secrets } from '../../src/agent-scenarios/volume-cases.ts';
import { openProcessEngine } from '../../src/real-engines.ts';

const stage = sharedStage('pods on processes', {
  open: openProcessEngine,
});

let opening: Promise<Stage> | undefined;

async function open(): Promise<Stage> {
  if (stage === undefined) throw new Error('there is no stage');
  const here = await stage();
  const client = here.plane.client.bind(here.plane);
  await client(ConfigMap)
    .namespace('default')
    .create({ metadata: { name: 'settings' }, data: { ...configMaps['settings'] } });
  const data = Object.fromEntries(Object.entries(secrets['key'] ?? {}).map(([key, value]) => [key, base64(value)]));
  await client(Secret)
    .namespace('default')
    .create({ metadata: { name: 'key' }, data });
  await client(Service)
    .namespace('default')
    .create({
      metadata: { name: 'near' },
      spec: { clusterIP: '127.96.0.77', selector: { app: 'near' }, ports: [{ port: 80 }] },
    });
  return here;
}

const opened = (t: ExecutionContext): Promise<Stage> => {
  t.timeout(2 * waitMs);
  opening ??= open();
  return opening;
};

/** Placeholders for amounts of this machine and values of the API. */
async function filledIn(here: Stage, pod: Pod, text: string): Promise<string> {
  const { allocatable = {} } = (await here.plane.client(Node).get(nodeName)).status ?? {};
  const known: Readonly<Record<string, string>> = {
    name: pod.metadata?.name ?? '',
    uid: pod.metadata?.uid ?? '',
    cpu: String((quantityMilliValue(String(allocatable['cpu'])) + 999n) / 1000n),
    memory: String(quantityValue(String(allocatable['memory']))),
  };
  return text.replace(/\{([a-z]+)\}/g, (_, name: string) => known[name] ?? `no ${name}`);
}

const restarts = ({ status }: Pod) => status?.containerStatuses?.[0]?.restartCount ?? 0;
const isReady = ({ status }: Pod) => status?.containerStatuses?.[0]?.ready === true;
const sh = (script: string): coreV1.Probe => ({ exec: { command: ['/bin/sh', '-c', script] } });
const often = { periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 1 };
const countEvents = (here: Stage, name: string, reason: string) =>
  here.events.filter((event) => event.pod === name && event.reason === reason).length;

/** A server that responds with a status code. */
async function serverFor(t: ExecutionContext) {
  const answers = { code: 200, requests: 0 };
  const server = createServer((_, response) => {
    answers.requests += 1;
    response.statusCode = answers.code;
    response.end();
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => server.closeAllConnections());
  t.teardown(() => server.close());
  const { port } = server.address() as AddressInfo;
  return { answers, httpGet: { host: '127.0.0.1', port, path: '/healthz' } };
}

if (stage !== undefined) {
  for (const [index, { title, env, envFrom, container, echo, prints }] of environmentCases.entries()) {
    test(title, async (t) => {
      const here = await opened(t);
      const name = `environment-${index}`;
      const variables = { ...(env && { env: [...env] }), ...(envFrom && { envFrom: [...envFrom] }) };
      const containers = [shell(`echo ${echo}`, { ...variables, ...container })];
      const pod = await here.create(name, { restartPolicy: 'Never', hostNetwork: true, containers });
      await here.reaches(name, 'Succeeded');
      t.is(await here.log(name), `${await filledIn(here, pod, prints)}\n`);
    });
  }

  test('probes: a container is not ready before the first delay is over, and is not restarted', async (t) => {
    const here = await opened(t);
    const readinessProbe = { ...sh('true'), ...often, initialDelaySeconds: 3 };
    await here.create('delayed', { containers: [shell(stay, { readinessProbe })] });
    const { status } = await here.until('delayed', isReady);
    const started = Date.parse(String(status?.containerStatuses?.[0]?.state?.running?.startedAt));
    const ready = Date.parse(String(status?.conditions?.find(({ type }) => type === 'Ready')?.lastTransitionTime));
    t.true(ready - started >= 3000, `${ready - started}`);
    t.is(status?.containerStatuses?.[0]?.restartCount, 0);
  });

  test('probes: a container whose readiness fails is never ready, and never restarted', async (t) => {
    const here = await opened(t);
    await here.create('unready', { containers: [shell(stay, { readinessProbe: { ...sh('exit 1'), ...often } })] });
    await here.until('unready', () => countEvents(here, 'unready', 'Unhealthy') >= 3);
    const pod = await here.get('unready');
    t.is(pod.status?.phase, 'Running');
    t.false(isReady(pod));
    t.is(restarts(pod), 0);
  });

  test('probes: a command that fails once its file is removed restarts the container', async (t) => {
    const here = await opened(t);
    const livenessProbe = { ...sh('cat /tmp/health'), ...often };
    await here.create('healthy', { containers: [shell(`: > /tmp/health; ${stay}`, { livenessProbe })] });
    await here.reaches('healthy', 'Running');
    await here.inside('healthy', 'rm /tmp/health');
    t.is(restarts(await here.until('healthy', (pod) => restarts(pod) >= 1)), 1);
    t.true(countEvents(here, 'healthy', 'Unhealthy') >= 1);
  });

  test('probes: a command that keeps succeeding causes no restart', async (t) => {
    const here = await opened(t);
    const livenessProbe = { ...sh('echo x >> /tmp/probes'), ...often };
    await here.create('alive', { containers: [shell(stay, { livenessProbe })] });
    await here.reaches('alive', 'Running');
    await eventually(async () => (await here.inside('alive', 'cat /tmp/probes')).length >= 2 * 4, waitMs);
    t.is(restarts(await here.get('alive')), 0);
  });

  test('probes: a server that responds with 500 causes a restart', async (t) => {
    const here = await opened(t);
    const { answers, httpGet } = await serverFor(t);
    await here.create('requests', { containers: [shell(stay, { livenessProbe: { httpGet, ...often } })] });
    await eventually(() => answers.requests >= 2, waitMs);
    t.is(restarts(await here.get('requests')), 0);
    answers.code = 500;
    t.is(restarts(await here.until('requests', (pod) => restarts(pod) >= 1)), 1);
  });

  test('probes: a server that keeps responding with 200 causes no restart', async (t) => {
    const here = await opened(t);
    const { answers, httpGet } = await serverFor(t);
    await here.create('answers', { containers: [shell(stay, { livenessProbe: { httpGet, ...often } })] });
    await eventually(() => answers.requests >= 4, waitMs);
    t.is(restarts(await here.get('answers')), 0);
  });

  test('probes: a command that exceeds its timeout counts as failed', async (t) => {
    const here = await opened(t);
    const livenessProbe = { ...sh('sleep 600'), ...often, timeoutSeconds: 1 };
    await here.create('slow', { containers: [shell(stay, { livenessProbe })] });
    await here.until('slow', (pod) => restarts(pod) >= 1);
    t.true(countEvents(here, 'slow', 'Unhealthy') >= 1);
  });

  test('init containers: with policy Always they run in order, followed by the other containers', async (t) => {
    const here = await opened(t);
    const volumeMounts = [{ name: 'log', mountPath: '/log' }];
    await here.create('inits', {
      volumes: [{ name: 'log', emptyDir: {} }],
      initContainers: [
        shell('echo first >> /log/f', { name: 'a', volumeMounts }),
        shell('echo second >> /log/f', { name: 'b', volumeMounts }),
      ],
      containers: [shell(`cat /log/f; ${stay}`, { volumeMounts })],
    });
    const { status } = await here.until('inits', isReady);
    t.is(status?.conditions?.find(({ type }) => type === 'Initialized')?.status, 'True');
    t.deepEqual(
      status?.initContainerStatuses?.map(({ state }) => state?.terminated?.exitCode),
      [0, 0],
    );
    t.is(await eventually(async () => (await here.log('inits')) || undefined, waitMs), 'first\nsecond\n');
  });

  test('init containers: with policy Always a failed one is retried, and no other container starts', async (t) => {
    const here = await opened(t);
    const initContainers = [shell('exit 1', { name: 'a' }), shell('echo never', { name: 'b' })];
    await here.create('init-fails', { initContainers, containers: [shell(stay)] });
    const { status } = await here.until(
      'init-fails',
      (pod) => (pod.status?.initContainerStatuses?.[0]?.restartCount ?? 0) >= 1,
    );
    t.is(status?.phase, 'Pending');
    t.is(status?.containerStatuses?.[0]?.state?.waiting?.reason, 'PodInitializing');
    t.is(status?.initContainerStatuses?.[1]?.state?.waiting?.reason, 'PodInitializing');
    t.is(status?.conditions?.find(({ type }) => type === 'Initialized')?.status, 'False');
  });

  test('pods: the status has the address of the node', async (t) => {
    const here = await opened(t);
    await here.create('addressed', { containers: [shell(stay)] });
    const { status } = await here.until('addressed', ({ status: found }) => found?.hostIP !== undefined);
    t.is(status?.hostIP, '192.0.2.1');
  });

  test('pods: a deadline that is set later ends the pod', async (t) => {
    const here = await opened(t);
    await here.create('limited', { containers: [shell(stay)] });
    await here.reaches('limited', 'Running');
    const pods = here.plane.client(Pod).namespace('default');
    await pods.patch('limited', 'merge', { spec: { activeDeadlineSeconds: 1 } });
    t.is((await here.reaches('limited', 'Failed')).status?.reason, 'DeadlineExceeded');
  });

  test('pods: changed labels reach the agent, and the container continues to run', async (t) => {
    const here = await opened(t);
    await here.create('labelled', { containers: [shell(stay)] }, { labels: { time: 'one' } });
    await here.until('labelled', isReady);
    await here.plane
      .client(Pod)
      .namespace('default')
      .patch('labelled', 'merge', { metadata: { labels: { time: 'two' } } });
    const known = () => here.node.agent.state.pods().find(({ metadata }) => metadata?.name === 'labelled');
    await eventually(() => known()?.metadata?.labels?.['time'] === 'two', waitMs);
    t.is(restarts(await here.get('labelled')), 0);
  });
}
