import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInProcessClient } from '@keelson/client';
import { type ApiClient, isStatusError, type KindDefinition, type KubeObject } from '@keelson/core';
import { objectKey } from '@keelson/core/internal';
import { systemClock } from '@keelson/core/runtime';
import {
  builtinKinds,
  CronJob,
  DaemonSet,
  Deployment,
  Job,
  Namespace,
  Pod,
  PodTemplate,
  ReplicaSet,
  ReplicationController,
  StatefulSet,
} from '@keelson/kinds';
import { until } from '@keelson/test-support';
import test, { type ExecutionContext } from 'ava';
import { type ControlPlane, type ControlPlaneOptions, createControlPlane } from '../../src/index.ts';
import { sharedStore } from '../support/shared-store.ts';

const prefix = 'pod-security.kubernetes.io/';
const container = { name: 'c', image: 'i' };
const bare = { containers: [container] };
const privileged = { containers: [{ ...container, securityContext: { privileged: true } }] };
const safe = {
  securityContext: { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } },
  containers: [{ ...container, securityContext: { allowPrivilegeEscalation: false, capabilities: { drop: ['ALL'] } } }],
};
const violation = 'privileged (container "c" must not set securityContext.privileged=true)';
const escalation =
  'allowPrivilegeEscalation != false (container "c" must set securityContext.allowPrivilegeEscalation=false)';

interface Started {
  readonly plane: ControlPlane;
  readonly api: ApiClient;
  /** Warnings since the last call. */
  readonly warnings: () => string[];
}

async function start(t: ExecutionContext, options: ControlPlaneOptions = {}): Promise<Started> {
  const plane = await createControlPlane({ controllers: false, ...options });
  t.teardown(() => plane.close());
  const texts: string[] = [];
  const api = createInProcessClient(plane.registry, { onWarning: (text) => texts.push(text) });
  return { plane, api, warnings: () => texts.splice(0) };
}

const labelled = (modes: Record<string, string>) =>
  Object.fromEntries(Object.entries(modes).map(([mode, value]) => [`${prefix}${mode}`, value]));
const namespaceWith = (name: string, modes: Record<string, string>) =>
  ({ metadata: { name, labels: labelled(modes) } }) as KubeObject as Namespace;

async function relabel({ api }: Started, name: string, modes: Record<string, string>): Promise<void> {
  const current = await api.resource(Namespace).get(name);
  const labels = { ...current.metadata?.labels, ...labelled(modes) };
  await api.resource(Namespace).update({ ...current, metadata: { ...current.metadata, labels } });
}

const pod = (name: string, spec: object, metadata: object = {}) => ({ metadata: { name, ...metadata }, spec }) as Pod;

async function rejected(t: ExecutionContext, call: Promise<unknown>): Promise<string> {
  const error = await t.throwsAsync(call);
  if (!isStatusError(error)) throw error ?? new Error('accepted');
  return `${error.status.code} ${error.message}`;
}

test('a namespace enforces a level on pods and warns of what violates another one', async (t) => {
  const { api, warnings } = await start(t);
  await api.resource(Namespace).create(namespaceWith('a', { enforce: 'baseline', warn: 'restricted' }));
  await api.resource(Namespace).create(namespaceWith('v', { enforce: 'baseline', 'enforce-version': 'v1.20' }));
  const pods = api.resource(Pod).namespace('a');
  const error = await t.throwsAsync(pods.create(pod('p', { ...privileged, hostNetwork: true })));
  if (!isStatusError(error)) throw error;
  t.like(error.status, {
    ...{ code: 403, reason: 'Forbidden', details: { name: 'p', kind: 'pods' } },
    message: `pods "p" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true), ${violation}`,
  });
  t.deepEqual(warnings(), [], 'a rejected request has no warnings');
  await pods.create(pod('p', bare));
  const [warning, ...more] = warnings();
  t.true(warning?.startsWith(`would violate PodSecurity "restricted:latest": ${escalation}, unrestricted`), warning);
  t.deepEqual(more, []);
  await pods.create(pod('q', safe));
  t.deepEqual(warnings(), []);
  const annotation = 'container.apparmor.security.beta.kubernetes.io/c';
  t.is(
    await rejected(t, pods.create(pod('r', safe, { annotations: { [annotation]: 'unconfined' } }))),
    '403 pods "r" is forbidden: violates PodSecurity "baseline:latest": forbidden AppArmor profiles (container "c" and ' +
      `annotation must not set AppArmor profile type to "Unconfined", "${annotation}="unconfined"")`,
  );
  const versioned = api.resource(Pod).namespace('v');
  t.is(
    await rejected(t, versioned.create(pod('p', privileged))),
    `403 pods "p" is forbidden: violates PodSecurity "baseline:v1.20": ${violation}`,
  );
});

test('a namespace without labels accepts every pod, and so does a server without the plugin', async (t) => {
  const { api, warnings } = await start(t);
  await api.resource(Pod).namespace('default').create(pod('p', privileged));
  t.deepEqual(warnings(), []);
  const off = await start(t, { disabledAdmissionPlugins: ['PodSecurity'] });
  await off.api.resource(Namespace).create(namespaceWith('a', { enforce: 'nothing' }));
  await off.api.resource(Pod).namespace('a').create(pod('p', privileged));
});

test('pods are rejected while their namespace is unknown; workloads are accepted', async (t) => {
  const { api } = await start(t, { disabledAdmissionPlugins: ['NamespaceLifecycle'] });
  t.is(
    await rejected(t, api.resource(Pod).namespace('missing').create(pod('p', safe))),
    '500 Internal error occurred: failed to lookup namespace "missing"',
  );
  const template = { metadata: { name: 't' }, template: { spec: privileged } } as KubeObject as PodTemplate;
  await api.resource(PodTemplate).namespace('missing').create(template);
});

test('workloads are accepted with a warning of what their pods violate', async (t) => {
  const { api, warnings } = await start(t);
  await api.resource(Namespace).create(namespaceWith('a', { enforce: 'baseline' }));
  await api.resource(Namespace).create(namespaceWith('silent', { enforce: 'baseline', warn: 'privileged' }));
  const labels = { app: 'x' };
  const template = (spec: object) => ({ metadata: { labels }, spec });
  const selected = (spec: object) => ({ spec: { selector: { matchLabels: labels }, template: template(spec) } });
  const ending = (spec: object) => ({ spec: { template: template({ ...spec, restartPolicy: 'Never' }) } });
  const oldDeployment = builtinKinds.find(({ group, kind }) => group === 'extensions' && kind === 'Deployment');
  const workloads: [KindDefinition, (spec: object) => object][] = [
    [ReplicationController, (spec) => ({ spec: { selector: labels, template: template(spec) } })],
    [PodTemplate, (spec) => ({ template: template(spec) })],
    [ReplicaSet, selected],
    [Deployment, selected],
    [oldDeployment as KindDefinition, selected],
    [DaemonSet, selected],
    [StatefulSet, (spec) => ({ spec: { ...selected(spec).spec, serviceName: 's' } })],
    [Job, ending],
    [CronJob, (spec) => ({ spec: { schedule: '0 0 * * *', jobTemplate: ending(spec) } })],
  ];
  for (const [kind, fieldsOf] of workloads) {
    const create = (namespace: string, spec: object) =>
      api
        .resource(kind)
        .namespace(namespace)
        .create({ metadata: { name: 'w' }, ...fieldsOf(spec) } as KubeObject, { dryRun: true });
    await create('a', privileged);
    t.deepEqual(warnings(), [`would violate PodSecurity "baseline:latest": ${violation}`], kind.kind);
    await create('a', bare);
    await create('silent', privileged);
    t.deepEqual(warnings(), [], kind.kind);
  }
  const deployments = api.resource(Deployment).namespace('a');
  const made = await deployments.create({ metadata: { name: 'w' }, ...selected(privileged) } as Deployment);
  warnings();
  const updated = await deployments.update({ ...made, metadata: { ...made.metadata, labels } });
  t.is(warnings().length, 1, 'every update is examined');
  await deployments.updateSubresource('w', 'status', { ...updated, status: { replicas: 1 } } as KubeObject);
  t.deepEqual(warnings(), []);
});

test('labels of a namespace that cannot be read are rejected, unless they were stored before', async (t) => {
  const started = await start(t, { storage: sharedStore(t) });
  const namespaces = started.api.resource(Namespace);
  const label = (name: string) => `metadata.labels[${prefix}${name}]: Invalid value`;
  const modes = { enforce: 'foo', 'enforce-version': '1.2', audit: '', 'audit-version': 'v2.0' };
  t.is(
    await rejected(t, namespaces.create(namespaceWith('x', { ...modes, warn: 'Baseline', 'warn-version': 'v1.01' }))),
    `422 Namespace "x" is invalid: [${label('enforce')}: "foo": must be one of privileged, baseline, restricted, ` +
      `${label('enforce-version')}: "1.2": must be "latest" or "v1.x", ` +
      `${label('audit')}: "": must be one of privileged, baseline, restricted, ` +
      `${label('audit-version')}: "v2.0": must be "latest" or "v1.x", ` +
      `${label('warn')}: "Baseline": must be one of privileged, baseline, restricted, ` +
      `${label('warn-version')}: "v1.01": must be "latest" or "v1.x"]`,
  );
  await namespaces.create(namespaceWith('y', { enforce: 'baseline', 'enforce-version': 'v1.999' }));
  t.is(
    await rejected(t, relabel(started, 'y', { warn: 'x' })),
    `422 Namespace "y" is invalid: ${label('warn')}: "x": must be one of privileged, baseline, restricted`,
  );
  const made = await namespaces.get('y');
  const stale = { ...made, metadata: { ...made.metadata, labels: labelled({ enforce: 'x' }) } };
  await namespaces.updateSubresource('y', 'status', stale);
  await relabel(started, 'y', { 'audit-version': 'latest' });
  await rejected(t, relabel(started, 'y', { warn: 'x' }));
  const pods = started.api.resource(Pod).namespace('y');
  await until(async () => {
    const error: unknown = await pods.create(pod('p', bare), { dryRun: true }).catch((why: unknown) => why);
    return isStatusError(error) && error.message.includes('violates PodSecurity "restricted:latest"');
  });
  t.deepEqual(started.warnings(), [], 'a level that cannot be read enforces the strictest one and does not warn');
});

test('updates of pods are examined when containers or images change', async (t) => {
  const started = await start(t);
  const { api } = started;
  await api.resource(Namespace).create(namespaceWith('a', {}));
  const pods = api.resource(Pod).namespace('a');
  await pods.create(pod('bad', bare));
  await pods.create(pod('good', safe));
  await relabel(started, 'a', { enforce: 'restricted' });
  await until(async () => isStatusError(await pods.create(pod('x', bare), { dryRun: true }).catch((e: unknown) => e)));
  const bad = await pods.get('bad');
  const labels = { changed: 'yes' };
  const kept = await pods.update({ ...bad, metadata: { ...bad.metadata, labels } });
  const refused = /^403 pods "(bad|good)" is forbidden: violates PodSecurity "restricted:latest": /;
  const image = { ...kept, spec: { ...kept.spec, containers: [{ ...kept.spec.containers[0], image: 'j' }] } } as Pod;
  t.regex(await rejected(t, pods.update(image)), refused);
  await pods.updateSubresource('bad', 'status', { ...kept, status: { phase: 'Running' } } as KubeObject);
  const debug = (name: string, fields: object = {}) => [{ ...container, name, ...fields }];
  const debugged = async (name: string, ephemeralContainers: readonly object[]) => {
    const current = await pods.get(name);
    const spec = { ...current.spec, ephemeralContainers };
    return pods.updateSubresource(name, 'ephemeralcontainers', { ...current, spec } as KubeObject);
  };
  t.regex(await rejected(t, debugged('bad', debug('d'))), refused);
  t.regex(await rejected(t, debugged('good', debug('d', { securityContext: { privileged: true } }))), refused);
  await debugged('good', debug('d', { securityContext: safe.containers[0]?.securityContext }));
  const target = { apiVersion: 'v1', kind: 'Node', name: 'n' };
  await pods.createSubresource('bad', 'binding', { metadata: { name: 'bad' }, target } as KubeObject);
});

test('a stricter level of a namespace warns of existing pods, grouped by what they violate', async (t) => {
  const started = await start(t);
  const { api, warnings } = started;
  await api.resource(Namespace).create(namespaceWith('a', {}));
  const owned = (uid: string, controller = true) => ({
    ownerReferences: [{ apiVersion: 'v1', kind: 'ReplicationController', name: 'r', uid, controller }],
  });
  for (const name of ['z', 'b']) await api.resource(Pod).namespace('a').create(pod(name, privileged));
  for (const name of ['o3', 'o1', 'o2']) {
    await api
      .resource(Pod)
      .namespace('a')
      .create(pod(name, { ...bare, hostNetwork: true }, owned('u')));
  }
  await api
    .resource(Pod)
    .namespace('a')
    .create(pod('m', { ...privileged, hostPID: true }, owned('w', false)));
  await api.resource(Pod).namespace('a').create(pod('safe', safe));
  const head = 'existing pods in namespace "a" violate the new PodSecurity enforce level';
  const each = ['b (and 1 other pod): privileged', 'm: host namespaces, privileged'];
  const owners = 'o1 (and 2 other pods): host namespaces';
  await until(async () => {
    await relabel(started, 'a', { enforce: 'privileged' });
    await relabel(started, 'a', { enforce: 'baseline' });
    return warnings().length === 4;
  });
  await relabel(started, 'a', { 'enforce-version': 'v1.30' });
  t.deepEqual(warnings(), [`${head} "baseline:v1.30"`, ...each, owners], 'the version changed');
  await relabel(started, 'a', { enforce: 'restricted' });
  t.is(warnings()[0], `${head} "restricted:v1.30"`);
  await relabel(started, 'a', { enforce: 'baseline' });
  await relabel(started, 'a', { warn: 'restricted', audit: 'restricted' });
  await relabel(started, 'a', { enforce: 'privileged' });
  t.deepEqual(warnings(), [], 'the level was relaxed');
});

test('the first 3000 pods of a namespace are examined, for a second', async (t) => {
  const storage = sharedStore(t);
  const count = 3001;
  for (let i = 0; i < count; i++) {
    const { metadata, spec } = pod(`p${i}`, privileged, { namespace: 'default', uid: `u${i}` });
    const value = Buffer.from(JSON.stringify({ kind: 'Pod', apiVersion: 'v1', metadata, spec }));
    await storage.write({ op: 'put', key: objectKey(Pod, 'default', `p${i}`), value, expect: 0 });
  }
  let step = 0;
  let leap = 0;
  const monotonic = () => {
    leap += step;
    return systemClock.monotonic() + leap;
  };
  const started = await start(t, { storage, clock: { ...systemClock, monotonic } });
  await relabel(started, 'default', { enforce: 'baseline' });
  const extent = /^new PodSecurity enforce level only checked against the first (\d+) of 3001 existing pods$/;
  const [text = '', head, group] = started.warnings();
  const checked = Number(extent.exec(text)?.[1]);
  t.true(checked > 0 && checked <= 3000, text);
  t.is(head, 'existing pods in namespace "default" violate the new PodSecurity enforce level "baseline:latest"');
  t.is(group, `p0 (and ${checked - 1} other pods): privileged`);
  step = 600;
  await relabel(started, 'default', { 'enforce-version': 'v1.30' });
  t.true(Number(extent.exec(started.warnings()[0] ?? '')?.[1]) < 3);
});

test('audit events contain the enforced policy and violations', async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'keelson-pod-security-'));
  t.teardown(() => rmSync(folder, { recursive: true }));
  const [policyFile, path] = [join(folder, 'policy.yaml'), join(folder, 'audit.log')];
  writeFileSync(policyFile, 'apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n');
  const { plane, api } = await start(t, { audit: { policyFile, log: { path } } });
  await api.resource(Namespace).create(namespaceWith('a', { enforce: 'baseline', audit: 'restricted' }));
  const { url } = await plane.listen();
  const post = async (path: string, body: object) => {
    const headers = { 'content-type': 'application/json' };
    return (await fetch(`${url}${path}`, { method: 'POST', headers, body: JSON.stringify(body) })).status;
  };
  t.is(await post('/api/v1/namespaces/default/pods', pod('p', privileged)), 201);
  t.is(await post('/api/v1/namespaces/a/pods', pod('p', privileged)), 403);
  t.is(await post('/api/v1/namespaces/a/pods', pod('p', safe)), 201);
  t.is(
    await post('/api/v1/namespaces/a/podtemplates', { metadata: { name: 't' }, template: { spec: privileged } }),
    201,
  );
  await plane.close();
  interface Event {
    readonly stage: string;
    readonly annotations?: Readonly<Record<string, string>>;
  }
  const events = readFileSync(path, 'utf8').trim().split('\n');
  const found = events
    .map((line) => JSON.parse(line) as Event)
    .filter(({ stage }) => stage === 'ResponseComplete')
    .map(({ annotations = {} }) => ({
      policy: annotations[`${prefix}enforce-policy`],
      violations: annotations[`${prefix}audit-violations`]?.replace(/^(would violate .*?: .*?\)).*$/, '$1'),
    }));
  const would = `would violate PodSecurity "restricted:latest": ${violation}`;
  t.deepEqual(found, [
    { policy: 'privileged:latest', violations: undefined },
    { policy: 'baseline:latest', violations: would },
    { policy: 'baseline:latest', violations: undefined },
    { policy: undefined, violations: would },
  ]);
});
