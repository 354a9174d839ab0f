import { writeFile } from 'node:fs/promises';
import type { Kubectl } from '../../src/kubectl.ts';
import { kubectlTest, namespaceFor } from '../../src/kubectl-cluster.ts';

const test = kubectlTest();

interface Loaded {
  readonly apiVersion: string;
  readonly metadata: {
    readonly uid: string;
    readonly labels?: Record<string, string>;
    readonly annotations?: Record<string, string>;
  };
  readonly spec: Record<string, unknown> & {
    readonly template: {
      readonly metadata: { readonly annotations?: Record<string, string> };
      readonly spec: { readonly containers: readonly { readonly name: string; readonly image: string }[] };
    };
  };
}

const configMap = (name: string, more: object = {}) => ({
  apiVersion: 'v1',
  kind: 'ConfigMap',
  metadata: { name },
  ...more,
});

test('create of a v1 List validates its items by the Swagger document and creates them', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, t.title);
  const list = (...items: object[]) => JSON.stringify({ apiVersion: 'v1', kind: 'List', items });
  const created = await kubectl.run(['create', '-n', namespace, '-f', '-'], {
    input: list(configMap('a'), configMap('b')),
  });
  t.regex(created, /configmap\/a created\nconfigmap\/b created/);
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'p' },
    spec: { containers: [{ name: 'c', image: 'i', ports: [{ port: 1 }] }] },
  };
  const wrong = await kubectl.try(['create', '-n', namespace, '-f', '-'], {
    input: list(configMap('c', { data: { list: ['x'] } }), pod),
  });
  t.not(wrong.code, 0);
  t.regex(wrong.stderr, /ConfigMap\.data\.list\): invalid type .*got "array", expected "string"/);
  t.regex(wrong.stderr, /unknown field "port" in io\.k8s\.api\.core\.v1\.ContainerPort/);
  t.regex(wrong.stderr, /missing required field "containerPort"/);
  t.not((await kubectl.try(['get', 'cm', 'c', '-n', namespace])).code, 0);
});

test('client-side validation accepts numbers for quantities and ports', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, t.title);
  const container = {
    name: 'c',
    image: 'i',
    resources: { limits: { cpu: 1, memory: '64Mi' } },
    livenessProbe: { httpGet: { port: 80 } },
    readinessProbe: { httpGet: { port: 'http' } },
  };
  const pod = { apiVersion: 'v1', kind: 'Pod', metadata: { name: 'p' }, spec: { containers: [container] } };
  const input = JSON.stringify({ apiVersion: 'v1', kind: 'List', items: [pod] });
  t.regex(await kubectl.run(['create', '-n', namespace, '-f', '-'], { input }), /created/);
});

test('services of every type are created', async (t) => {
  const { kubectl } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  await kubectl.run(['create', 'service', 'clusterip', 'plain', '--tcp=80:8080', ...inNamespace]);
  await kubectl.run(['create', 'service', 'clusterip', 'headless', '--clusterip=None', ...inNamespace]);
  await kubectl.run(['create', 'service', 'nodeport', 'node', '--tcp=80', '--node-port=30080', ...inNamespace]);
  await kubectl.run(['create', 'service', 'loadbalancer', 'balanced', '--tcp=80', ...inNamespace]);
  await kubectl.run(['create', 'service', 'externalname', 'outside', '--external-name=example.com', ...inNamespace]);
  const types = await kubectl.run([
    'get',
    'svc',
    ...inNamespace,
    '-o',
    'jsonpath={range .items[*]}{.metadata.name} {.spec.type} {.spec.ports[0].targetPort}{"\\n"}{end}',
  ]);
  t.deepEqual(
    types
      .trim()
      .split('\n')
      .map((line) => line.trim())
      .sort(),
    [
      'balanced LoadBalancer 80',
      'headless ClusterIP',
      'node NodePort 80',
      'outside ExternalName',
      'plain ClusterIP 8080',
    ],
  );
});

test('secrets of every type are created', async (t) => {
  const { kubectl, folder } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  await kubectl.run(['create', 'secret', 'generic', 'plain', '--from-literal=a=b', ...inNamespace]);
  await kubectl.run([
    'create',
    'secret',
    'docker-registry',
    'registry',
    '--docker-username=u',
    '--docker-password=p',
    '--docker-server=registry.example.com',
    ...inNamespace,
  ]);
  await writeFile(`${folder}/words.txt`, 'one\ntwo\n');
  await kubectl.run([
    'create',
    'secret',
    'generic',
    'file',
    `--from-file=${folder}/words.txt`,
    '--type=example.com/own',
    ...inNamespace,
  ]);
  const secret = await kubectl.json<{ type: string; data: Record<string, string> }>([
    'get',
    'secret',
    'file',
    ...inNamespace,
  ]);
  t.is(secret.type, 'example.com/own');
  t.is(Buffer.from(secret.data['words.txt'] ?? '', 'base64').toString(), 'one\ntwo\n');
  const registry = await kubectl.json<{ type: string }>(['get', 'secret', 'registry', ...inNamespace]);
  t.is(registry.type, 'kubernetes.io/dockerconfigjson');
});

test('an ingress is the same object in both groups', async (t) => {
  const { kubectl } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  await kubectl.run([
    'create',
    'ingress',
    'front',
    '--class=own',
    '--rule=example.com/path*=web:80,tls=cert',
    '--rule=example.com/exact=web:http',
    '--default-backend=rest:8080',
    ...inNamespace,
  ]);
  const networking = await kubectl.json<Loaded>(['get', 'ingresses.v1.networking.k8s.io', 'front', ...inNamespace]);
  t.deepEqual(networking.spec['rules'], [
    {
      host: 'example.com',
      http: {
        paths: [
          { path: '/path', pathType: 'Prefix', backend: { service: { name: 'web', port: { number: 80 } } } },
          { path: '/exact', pathType: 'Exact', backend: { service: { name: 'web', port: { name: 'http' } } } },
        ],
      },
    },
  ]);
  const old = await kubectl.json<Loaded>(['get', 'ingresses.v1beta1.extensions', 'front', ...inNamespace]);
  t.is(old.metadata.uid, networking.metadata.uid);
  t.is(old.apiVersion, 'extensions/v1beta1');
  t.deepEqual(old.spec['backend'], { serviceName: 'rest', servicePort: 8080 });
  t.like(old.spec['rules'], [
    {
      http: {
        paths: [
          { pathType: 'Prefix', backend: { serviceName: 'web', servicePort: 80 } },
          { backend: { servicePort: 'http' } },
        ],
      },
    },
  ]);
  await kubectl.run(['annotate', 'ingresses.v1beta1.extensions', 'front', 'by=old', ...inNamespace]);
  const again = await kubectl.json<Loaded>(['get', 'ing', 'front', ...inNamespace]);
  t.is(again.apiVersion, 'networking.k8s.io/v1');
  t.is(again.metadata.annotations?.['by'], 'old');
  t.deepEqual(again.spec, networking.spec);
  t.regex(await kubectl.run(['get', 'ing', ...inNamespace]), /front +own +example\.com +80, 443/);
  t.regex(await kubectl.run(['describe', 'ing', 'front', ...inNamespace]), /\/path +web:80/);
});

test('run creates a pod, expose creates services of pods and deployments', async (t) => {
  const { kubectl } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  t.regex(
    await kubectl.run([
      'run',
      'shell',
      '--image=busybox',
      '--port=80',
      '--labels=app=shell',
      '--env=A=B',
      ...inNamespace,
      '--',
      'sleep',
      '1',
    ]),
    /pod\/shell created/,
  );
  await kubectl.run(['expose', 'pod', 'shell', '--port=80', '--target-port=8080', ...inNamespace]);
  await kubectl.run(['create', 'deployment', 'web', '--image=nginx', '--port=80', ...inNamespace]);
  await kubectl.run(['expose', 'deployment', 'web', '--name=front', '--type=NodePort', ...inNamespace]);
  const service = async (name: string) => (await kubectl.json<Loaded>(['get', 'svc', name, ...inNamespace])).spec;
  t.like(await service('shell'), {
    selector: { app: 'shell' },
    ports: [{ port: 80, targetPort: 8080, protocol: 'TCP' }],
  });
  t.like(await service('front'), { selector: { app: 'web' }, type: 'NodePort' });
});

async function image(kubectl: Kubectl, namespace: string): Promise<string> {
  const { spec } = await kubectl.json<Loaded>(['get', 'deploy', 'web', '-n', namespace]);
  return spec.template.spec.containers.map((container) => `${container.name}=${container.image}`).join(' ');
}

test('set changes images, environments, resources, selectors and service accounts', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, t.title);
  const inNamespace = ['-n', namespace];
  await kubectl.run(['create', 'deployment', 'web', '--image=nginx:1', ...inNamespace]);
  await kubectl.run(['set', 'image', 'deploy/web', 'nginx=nginx:2', ...inNamespace]);
  t.is(await image(kubectl, namespace), 'nginx=nginx:2');
  await kubectl.run(['set', 'env', 'deploy/web', 'A=B', ...inNamespace]);
  await kubectl.run(['set', 'resources', 'deploy/web', '--limits=cpu=500m', ...inNamespace]);
  await kubectl.run(['set', 'serviceaccount', 'deploy', 'web', 'robot', ...inNamespace]);
  const { spec } = await kubectl.json<Loaded>(['get', 'deploy', 'web', ...inNamespace]);
  t.like(spec.template.spec, {
    serviceAccountName: 'robot',
    containers: [{ env: [{ name: 'A', value: 'B' }], resources: { limits: { cpu: '500m' } } }],
  });
  await kubectl.run(['create', 'service', 'clusterip', 'web', '--tcp=80', ...inNamespace]);
  await kubectl.run(['set', 'selector', 'svc', 'web', 'app=other', ...inNamespace]);
  t.like((await kubectl.json<Loaded>(['get', 'svc', 'web', ...inNamespace])).spec, { selector: { app: 'other' } });
});

/** A deployment in the state that its controller creates: a replica set for each revision. */
async function withHistory(kubectl: Kubectl, namespace: string): Promise<void> {
  const revision = 'deployment.kubernetes.io/revision';
  const api = `/apis/apps/v1/namespaces/${namespace}`;
  const containers = [{ name: 'nginx', image: 'nginx:2' }];
  const labels = { app: 'web' };
  const { metadata } = await kubectl.post<Loaded>(`${api}/deployments`, {
    metadata: { name: 'web', labels, annotations: { [revision]: '2' } },
    spec: { selector: { matchLabels: labels }, template: { metadata: { labels }, spec: { containers } } },
  });
  const owner = { apiVersion: 'apps/v1', kind: 'Deployment', name: 'web', uid: metadata.uid, controller: true };
  for (const number of ['1', '2']) {
    const labels = { app: 'web', 'pod-template-hash': `hash${number}` };
    await kubectl.post(`${api}/replicasets`, {
      apiVersion: 'apps/v1',
      kind: 'ReplicaSet',
      metadata: {
        name: `web-${number}`,
        labels,
        annotations: { [revision]: number, 'kubernetes.io/change-cause': `because ${number}` },
        ownerReferences: [owner],
      },
      spec: {
        replicas: number === '2' ? 1 : 0,
        selector: { matchLabels: labels },
        template: { metadata: { labels }, spec: { containers: [{ name: 'nginx', image: `nginx:${number}` }] } },
      },
    });
  }
}

test('rollout history lists revisions, and undo returns to them', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, t.title);
  const inNamespace = ['-n', namespace];
  await withHistory(kubectl, namespace);
  t.regex(await kubectl.run(['rollout', 'history', 'deploy/web', ...inNamespace]), /1 +because 1\n2 +because 2/);
  t.regex(await kubectl.run(['rollout', 'history', 'deploy/web', '--revision=1', ...inNamespace]), /Image:\s+nginx:1/);
  t.regex(await kubectl.run(['rollout', 'undo', 'deploy/web', ...inNamespace]), /rolled back/);
  t.is(await image(kubectl, namespace), 'nginx=nginx:1');
  await kubectl.run(['rollout', 'undo', 'deploy/web', '--to-revision=2', ...inNamespace]);
  t.is(await image(kubectl, namespace), 'nginx=nginx:2');
  const absent = await kubectl.try(['rollout', 'undo', 'deploy/web', '--to-revision=7', ...inNamespace]);
  t.regex(absent.stderr, /unable to find specified revision 7/);
});

test('rollout restart, pause and resume change the deployment', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, t.title);
  const inNamespace = ['-n', namespace];
  await kubectl.run(['create', 'deployment', 'web', '--image=nginx:1', ...inNamespace]);
  const deployment = () => kubectl.json<Loaded>(['get', 'deploy', 'web', ...inNamespace]);
  await kubectl.run(['rollout', 'restart', 'deploy/web', ...inNamespace]);
  t.regex(
    (await deployment()).spec.template.metadata.annotations?.['kubectl.kubernetes.io/restartedAt'] ?? '',
    /^\d{4}-/,
  );
  await kubectl.run(['rollout', 'pause', 'deploy/web', ...inNamespace]);
  t.true((await deployment()).spec['paused']);
  await kubectl.run(['rollout', 'resume', 'deploy/web', ...inNamespace]);
  t.falsy((await deployment()).spec['paused']);
});

test('rollout status waits until the rollout is complete', async (t) => {
  const { kubectl } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  await kubectl.run(['create', 'deployment', 'web', '--image=nginx:1', '--replicas=2', ...inNamespace]);
  const status = (updated: number) =>
    kubectl.run([
      'patch',
      'deploy',
      'web',
      '--subresource=status',
      '--type=merge',
      '-p',
      JSON.stringify({
        status: {
          observedGeneration: 1,
          replicas: 2,
          updatedReplicas: updated,
          readyReplicas: updated,
          availableReplicas: updated,
        },
      }),
      ...inNamespace,
    ]);
  const following = kubectl.follow(['rollout', 'status', 'deploy/web', '--timeout=60s', ...inNamespace]);
  t.teardown(() => following.stop());
  await following.waitFor(/Waiting for deployment spec update to be observed/);
  await status(1);
  await following.waitFor(/1 out of 2 new replicas have been updated/);
  await status(2);
  await following.waitFor(/deployment "web" successfully rolled out/);
  t.pass();
});

test('wait returns for conditions, fields and deletions', async (t) => {
  const { kubectl } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  await kubectl.run(['run', 'one', '--image=i', ...inNamespace]);
  const ready = kubectl.run(['wait', '--for=condition=Ready', 'pod/one', '--timeout=30s', ...inNamespace]);
  const phase = kubectl.run([
    'wait',
    '--for=jsonpath={.status.phase}=Running',
    'pod/one',
    '--timeout=30s',
    ...inNamespace,
  ]);
  await kubectl.run([
    'patch',
    'pod',
    'one',
    '--subresource=status',
    '-p',
    JSON.stringify({ status: { phase: 'Running', conditions: [{ type: 'Ready', status: 'True' }] } }),
    ...inNamespace,
  ]);
  t.regex(await ready, /pod\/one condition met/);
  t.regex(await phase, /pod\/one condition met/);
  const gone = kubectl.run(['wait', '--for=delete', 'pod/one', '--timeout=30s', ...inNamespace]);
  await kubectl.run(['delete', 'pod', 'one', '--now', '--wait=false', ...inNamespace]);
  t.is(typeof (await gone), 'string');
  const late = await kubectl.try(['wait', '--for=condition=Ready', 'pod/one', '--timeout=1s', ...inNamespace]);
  t.regex(late.stderr, /NotFound/);
});

test('diff shows what apply would change and changes nothing', async (t) => {
  const { kubectl } = t.context;
  const inNamespace = ['-n', await namespaceFor(kubectl, t.title)];
  const input = (mode: string) => ({ input: JSON.stringify(configMap('thing', { data: { mode } })) });
  const fresh = await kubectl.try(['diff', ...inNamespace, '-f', '-'], input('slow'));
  t.is(fresh.code, 1);
  await kubectl.run(['apply', ...inNamespace, '-f', '-'], input('slow'));
  t.is((await kubectl.try(['diff', ...inNamespace, '-f', '-'], input('slow'))).code, 0);
  const changed = await kubectl.try(['diff', ...inNamespace, '-f', '-'], input('fast'));
  t.is(changed.code, 1);
  t.regex(changed.stdout, /^- {2}mode: slow$/m);
  t.regex(changed.stdout, /^\+ {2}mode: fast$/m);
  t.like(await kubectl.json(['get', 'cm', 'thing', ...inNamespace]), { data: { mode: 'slow' } });
});

test('nodes are cordoned, uncordoned, tainted, labelled and drained by eviction', async (t) => {
  const { kubectl } = t.context;
  const namespace = await namespaceFor(kubectl, t.title);
  const name = 'machine-typed';
  await kubectl.post('/api/v1/nodes', { metadata: { name } });
  const node = () => kubectl.json<Loaded>(['get', 'node', name]);
  t.regex(await kubectl.run(['drain', name]), /drained/);
  t.true((await node()).spec['unschedulable']);
  await kubectl.run(['uncordon', name]);
  t.falsy((await node()).spec['unschedulable']);
  await kubectl.run(['cordon', name]);
  t.true((await node()).spec['unschedulable']);
  await kubectl.run(['taint', 'node', name, 'team=red:NoSchedule']);
  t.like((await node()).spec['taints'], [{ key: 'team', value: 'red', effect: 'NoSchedule' }]);
  await kubectl.run(['taint', 'node', name, 'team-']);
  t.falsy((await node()).spec['taints']);
  await kubectl.run(['label', 'node', name, 'disk=ssd']);
  await kubectl.run(['annotate', 'node', name, 'note=here']);
  t.like((await node()).metadata, { labels: { disk: 'ssd' }, annotations: { note: 'here' } });
  const pod = {
    apiVersion: 'v1',
    kind: 'Pod',
    metadata: { name: 'one' },
    spec: { nodeName: name, containers: [{ name: 'c', image: 'i' }] },
  };
  await kubectl.create(namespace, pod);
  const drained = await kubectl.run(['drain', name, '--force', '--grace-period=0', '--timeout=30s']);
  t.regex(drained, /pod\/one evicted/);
  t.regex((await kubectl.try(['get', 'pod', 'one', '-n', namespace])).stderr, /NotFound/);
});

test('auth reports the identity and the permissions of the user', async (t) => {
  const { kubectl } = t.context;
  t.regex(await kubectl.run(['auth', 'whoami']), /Groups +\[system:masters system:authenticated\]/);
  const canI = async (...words: string[]) => (await kubectl.try(['auth', 'can-i', ...words])).stdout.trim();
  t.is(await canI('delete', 'deployments.apps'), 'yes');
  t.is(await canI('get', '/metrics'), 'yes');
  t.regex(await kubectl.run(['auth', 'can-i', '--list']), /\*\.\* +\[\] +\[\] +\[\*\]\n +\[\*\] +\[\] +\[\*\]/);
});

test('auth and requests agree about impersonated users', async (t) => {
  const { kubectl } = t.context;
  const asJane = ['--as=jane', '--as-group=dev', '--as-uid=77'];
  const who = await kubectl.run(['auth', 'whoami', ...asJane]);
  t.regex(who, /Username +jane/);
  t.regex(who, /UID +77/);
  t.regex(who, /Groups +\[dev system:authenticated\]/);
  const may = await kubectl.try(['auth', 'can-i', 'get', 'pods', ...asJane]);
  t.is(may.stdout.trim(), 'no');
  t.is(may.code, 1);
  const refused = await kubectl.try(['get', 'pods', ...asJane]);
  t.regex(
    refused.stderr,
    /pods is forbidden: User "jane" cannot list resource "pods" in API group "" in the namespace "default"/,
  );
  t.is((await kubectl.try(['auth', 'can-i', 'get', '/healthz', ...asJane])).stdout.trim(), 'yes');
  const rules = await kubectl.run(['auth', 'can-i', '--list', ...asJane]);
  t.regex(rules, /selfsubjectaccessreviews\.authorization\.k8s\.io +\[\] +\[\] +\[create\]/);
  t.regex(rules, /\[\/healthz\]/);
  t.notRegex(rules, /\*\.\*/);
});

test('a SubjectAccessReview can be created from a manifest', async (t) => {
  const { kubectl } = t.context;
  // Kinds without PATCH make kubectl search for a custom resource definition, and this server has none.
  const create = ['create', '--validate=false', '-f', '-'];
  const review = async (spec: object) => {
    const manifest = { apiVersion: 'authorization.k8s.io/v1', kind: 'SubjectAccessReview', spec };
    return JSON.parse(await kubectl.run([...create, '-o', 'json'], { input: JSON.stringify(manifest) })) as {
      status: { allowed: boolean };
    };
  };
  const resourceAttributes = { verb: 'list', resource: 'secrets', namespace: 'default' };
  t.deepEqual((await review({ user: 'bob', resourceAttributes })).status, { allowed: false });
  t.deepEqual((await review({ user: 'bob', groups: ['system:masters'], resourceAttributes })).status, {
    allowed: true,
  });
  const wrong = await kubectl.try(create, {
    input: JSON.stringify({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SubjectAccessReview',
      spec: { user: 'bob' },
    }),
  });
  t.regex(wrong.stderr, /spec\.resourceAttributes: Invalid value/);
  t.regex((await kubectl.try(['get', 'subjectaccessreviews'])).stderr, /NotFound|MethodNotAllowed|does not allow/);
});
