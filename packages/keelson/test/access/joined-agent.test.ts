import { generateKeyPairSync } from 'node:crypto';
import { mkdtemp, rm } from 'node:fs/promises';
import { request } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseTokenFile, tokenUsers } from '@keelson/access';
import { createRequest } from '@keelson/certificates';
import { createHttpClient } from '@keelson/client';
import type { ApiClient, KindDefinition } from '@keelson/core';
import { systemClock } from '@keelson/core/runtime';
import {
  CertificateSigningRequest,
  ConfigMap,
  Namespace,
  Node,
  PersistentVolume,
  PersistentVolumeClaim,
  Pod,
  Secret,
  ServiceAccount,
  VolumeAttachment,
} from '@keelson/kinds';
import test, { type ExecutionContext } from 'ava';
import { createControlPlane } from '../../src/control-plane/create-control-plane.ts';
import { credentialsSigner, loadCredentials } from '../../src/tls/credentials.ts';

const signingKey = generateKeyPairSync('ec', {
  namedCurve: 'P-256',
  privateKeyEncoding: { type: 'pkcs8', format: 'pem' },
  publicKeyEncoding: { type: 'spki', format: 'pem' },
}).privateKey;
const token = 'abcdef.0123456789abcdef';

interface Answer {
  readonly status: number;
  readonly message: string;
}

/** A plane with two nodes, and the certificate that the agent of n1 got with a bootstrap token. */
async function joined(t: ExecutionContext) {
  const folder = await mkdtemp(join(tmpdir(), 'keelson-joined-'));
  t.teardown(() => rm(folder, { recursive: true }));
  const credentials = await loadCredentials(folder, '127.0.0.1', systemClock.now());
  const plane = await createControlPlane({
    authenticateToken: tokenUsers(parseTokenFile(`${token},system:bootstrap:abcdef,,system:bootstrappers\n`, 'x')),
    certificateSigner: await credentialsSigner(credentials),
    serviceAccounts: { signingKey },
  });
  t.teardown(() => plane.close());
  const { url } = await plane.listen({ credentials });

  const { key, request: csr } = await createRequest({ commonName: 'system:node:n1', organizations: ['system:nodes'] });
  const joining = createHttpClient({ server: url, ca: credentials.authority, token });
  t.teardown(() => joining.close());
  const requests = joining.resource(CertificateSigningRequest);
  await requests.create({
    ...{ apiVersion: 'certificates.k8s.io/v1', kind: 'CertificateSigningRequest', metadata: { name: 'join-n1' } },
    spec: {
      request: Buffer.from(csr).toString('base64'),
      signerName: 'kubernetes.io/kube-apiserver-client-kubelet',
      usages: ['digital signature', 'client auth'],
    },
  });
  let cert: string | undefined;
  for (const end = performance.now() + 30_000; cert === undefined && performance.now() < end; ) {
    cert = (await requests.get('join-n1')).status?.certificate;
    if (cert === undefined) await new Promise((resolve) => setTimeout(resolve, 20));
  }
  const certificate = Buffer.from(cert ?? '', 'base64').toString();

  const ask = (method: string, path: string, body?: unknown, credential: object = { cert: certificate, key }) =>
    new Promise<Answer>((resolve, reject) => {
      const type = method === 'PATCH' ? 'application/merge-patch+json' : 'application/json';
      const headers = body === undefined ? {} : { 'content-type': type };
      const options = { agent: false, method, headers, ca: credentials.authority, ...credential };
      const outgoing = request(url + path, options, (incoming) => {
        const status = incoming.statusCode ?? 0;
        const chunks: Buffer[] = [];
        incoming.on('data', (chunk: Buffer) => chunks.push(chunk));
        incoming.on('end', () => {
          const text = Buffer.concat(chunks).toString();
          const message = text.startsWith('{') ? (JSON.parse(text) as { message?: string }).message : undefined;
          resolve({ status, message: message ?? '' });
        });
        // The head of a watch is its answer.
        if (status !== 200 || !path.includes('watch=')) return;
        resolve({ status, message: '' });
        incoming.destroy();
      });
      outgoing.on('error', reject);
      outgoing.end(body === undefined ? undefined : JSON.stringify(body));
    });
  return { plane, ask };
}

const pod = (name: string, nodeName: string, spec: Partial<Pod['spec']>): Pod => ({
  apiVersion: 'v1',
  kind: 'Pod',
  metadata: { name },
  spec: { containers: [{ name: 'main', image: 'app:1' }], automountServiceAccountToken: false, ...spec, nodeName },
});

const a = '/api/v1/namespaces/a';
const leases = '/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases';
const csrs = '/apis/certificates.k8s.io/v1/certificatesigningrequests';
const node = (name: string) => ({ apiVersion: 'v1', kind: 'Node', metadata: { name } });
const lease = (name: string) => ({ apiVersion: 'coordination.k8s.io/v1', kind: 'Lease', metadata: { name }, spec: {} });
const storage = '/apis/storage.k8s.io/v1';
const csiNode = (name: string) => ({
  ...{ apiVersion: 'storage.k8s.io/v1', kind: 'CSINode' },
  metadata: { name },
  spec: { drivers: [] },
});
const label = { metadata: { labels: { x: 'y' } } };
const tokenFor = (name: string, uid: string) => ({
  ...{ apiVersion: 'authentication.k8s.io/v1', kind: 'TokenRequest' },
  spec: { audiences: [], boundObjectRef: { apiVersion: 'v1', kind: 'Pod', name, uid } },
});

type Attempt = readonly [method: string, path: string, body?: unknown];

/** What the agent of n1 needs. */
const own: readonly Attempt[] = [
  ['GET', '/api/v1/nodes/n1'],
  ['GET', '/api/v1/nodes?fieldSelector=metadata.name%3Dn1'],
  ['PATCH', '/api/v1/nodes/n1/status', { status: { capacity: { cpu: '4' } } }],
  ['POST', leases, lease('n1')],
  ['GET', `${leases}/n1`],
  ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn1'],
  ['GET', '/api/v1/pods?watch=1&fieldSelector=spec.nodeName%3Dn1'],
  ['GET', `${a}/pods/mine`],
  ['PATCH', `${a}/pods/mine/status`, { status: { phase: 'Running' } }],
  ...['env', 'env-from', 'volume', 'projected', 'pull'].map((name) => ['GET', `${a}/secrets/${name}`] as const),
  ...['env', 'env-from', 'volume', 'projected'].map((name) => ['GET', `${a}/configmaps/${name}`] as const),
  ['GET', `${a}/secrets?fieldSelector=metadata.name%3Denv`],
  ['GET', `${a}/configmaps?watch=1&fieldSelector=metadata.name%3Denv`],
  ['GET', `${a}/serviceaccounts/mine`],
  // The claim and the ephemeral claim of its pod, their volumes, and a Secret of one of these.
  ['GET', `${a}/persistentvolumeclaims/mine`],
  ['GET', `${a}/persistentvolumeclaims/mine-scratch`],
  ['PATCH', `${a}/persistentvolumeclaims/mine/status`, { status: { capacity: { storage: '1Gi' } } }],
  ['GET', '/api/v1/persistentvolumes/mine'],
  ['GET', '/api/v1/namespaces/b/secrets/staging'],
  ['GET', `${storage}/volumeattachments/mine`],
  ['POST', `${storage}/csinodes`, csiNode('n1')],
  ['GET', `${storage}/csinodes/n1`],
  ['GET', `${storage}/csidrivers`],
  ['GET', '/apis/node.k8s.io/v1/runtimeclasses?watch=1'],
  ['GET', '/api/v1/services'],
  ['GET', '/apis/discovery.k8s.io/v1/endpointslices'],
  ['GET', '/apis/discovery.k8s.io/v1/endpointslices?watch=1'],
  [
    'POST',
    `${a}/events`,
    {
      ...{ apiVersion: 'v1', kind: 'Event', metadata: { name: 'e', namespace: 'a' } },
      involvedObject: { kind: 'Pod', namespace: 'a', name: 'mine' },
    },
  ],
  ['GET', `${csrs}/join-n1`],
];

const foreign: readonly Attempt[] = [
  // Secrets and ConfigMaps to which no pod of the node refers, and collections of them.
  ...['secrets', 'configmaps'].flatMap((resource): Attempt[] => [
    ['GET', `${a}/${resource}/theirs`],
    ['GET', `${a}/${resource}/unused`],
    ['GET', `${a}/${resource}/missing`],
    ['GET', `${a}/${resource}`],
    ['GET', `/api/v1/${resource}`],
    ['GET', `/api/v1/${resource}?fieldSelector=metadata.name%3Denv`],
    ['GET', `${a}/${resource}?fieldSelector=metadata.name%21%3Denv`],
    ['GET', `${a}/${resource}?watch=1`],
    ['GET', `/api/v1/namespaces/b/${resource}/env`],
    ['POST', `${a}/${resource}`, { metadata: { name: 'new' } }],
    ['PUT', `${a}/${resource}/env`, { metadata: { name: 'env' } }],
    ['PATCH', `${a}/${resource}/env`, label],
    ['DELETE', `${a}/${resource}/env`],
    ['DELETE', `${a}/${resource}`],
  ]),
  // Other nodes, and what an agent may not do to its own.
  ['GET', '/api/v1/nodes'],
  ['GET', '/api/v1/nodes?watch=1'],
  ['GET', '/api/v1/nodes/n2'],
  ['POST', '/api/v1/nodes', node('n3')],
  ['PATCH', '/api/v1/nodes/n2', label],
  ['PATCH', '/api/v1/nodes/n2/status', { status: {} }],
  ['DELETE', '/api/v1/nodes/n1'],
  ['DELETE', '/api/v1/nodes/n2'],
  ['PATCH', '/api/v1/nodes/n1', { metadata: { labels: { 'node-restriction.kubernetes.io/x': 'y' } } }],
  ['PATCH', '/api/v1/nodes/n1', { spec: { taints: [{ key: 'x', effect: 'NoSchedule' }] } }],
  ['GET', '/api/v1/nodes/n2/proxy/pods'],
  // Pods of other nodes.
  ['GET', '/api/v1/pods'],
  ['GET', `${a}/pods`],
  ['GET', '/api/v1/pods?watch=1'],
  ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn2'],
  ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%21%3Dn1'],
  ['GET', '/api/v1/pods?fieldSelector=spec.nodeName%3Dn2&fieldSelector=spec.nodeName%3Dn1'],
  ['GET', `${a}/pods/theirs`],
  ['GET', `${a}/pods/missing`],
  ['PATCH', `${a}/pods/theirs/status`, { status: { phase: 'Failed' } }],
  ['DELETE', `${a}/pods/theirs`],
  ['PATCH', `${a}/pods/mine`, label],
  ['POST', `${a}/pods`, pod('plain', 'n1', {})],
  ['POST', `${a}/pods/theirs/eviction`, { apiVersion: 'policy/v1', kind: 'Eviction', metadata: { name: 'theirs' } }],
  ['POST', `${a}/pods/mine/binding`, { target: { name: 'n1' } }],
  ['GET', `${a}/pods/theirs/log`],
  ['POST', `${a}/pods/theirs/exec?command=id`],
  // Tokens of service accounts that no pod of the node uses, and tokens that are not bound to a pod of the node.
  ['POST', `${a}/serviceaccounts/theirs/token`, tokenFor('theirs', 'x')],
  ['POST', `${a}/serviceaccounts/mine/token`, tokenFor('theirs', 'x')],
  ['POST', `${a}/serviceaccounts/mine/token`, { ...tokenFor('mine', 'x'), spec: { audiences: [] } }],
  ['GET', `${a}/serviceaccounts/theirs`],
  ['GET', `${a}/serviceaccounts`],
  ['POST', `${a}/serviceaccounts`, { metadata: { name: 'new' } }],
  // Claims, volumes and attachments of others, and collections of them.
  ['GET', `${a}/persistentvolumeclaims/theirs`],
  ['GET', `${a}/persistentvolumeclaims`],
  ['GET', '/api/v1/persistentvolumeclaims?watch=1'],
  ['PATCH', `${a}/persistentvolumeclaims/theirs/status`, { status: {} }],
  ['PATCH', `${a}/persistentvolumeclaims/mine`, label],
  ['GET', '/api/v1/persistentvolumes/theirs'],
  ['GET', '/api/v1/persistentvolumes/free'],
  ['GET', '/api/v1/persistentvolumes'],
  ['PATCH', '/api/v1/persistentvolumes/mine', label],
  ['GET', '/api/v1/namespaces/b/secrets/control'],
  ['GET', `${storage}/volumeattachments/theirs`],
  ['GET', `${storage}/volumeattachments`],
  ['GET', `${storage}/csinodes/n2`],
  ['GET', `${storage}/csinodes`],
  ['DELETE', `${storage}/csinodes/n2`],
  // Leases of others.
  ['GET', `${leases}/n2`],
  ['GET', leases],
  ['POST', leases, lease('n2')],
  ['PUT', `${leases}/n2`, lease('n2')],
  ['DELETE', `${leases}/n2`],
  ['GET', '/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/keelson-controllers'],
  // Certificates of other identities.
  ['PUT', `${csrs}/join-n1/approval`, { metadata: { name: 'join-n1' } }],
  ['PATCH', `${csrs}/join-n1/status`, { status: {} }],
  ['DELETE', `${csrs}/join-n1`],
  // Rights, namespaces, workloads, other documents.
  ['GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles'],
  ['POST', '/apis/rbac.authorization.k8s.io/v1/clusterrolebindings', { metadata: { name: 'x' } }],
  ['GET', '/api/v1/namespaces'],
  ['DELETE', '/api/v1/namespaces/a'],
  ['POST', '/apis/apps/v1/namespaces/a/deployments', {}],
  ['POST', '/apis/discovery.k8s.io/v1/namespaces/a/endpointslices', {}],
  ['GET', '/metrics'],
];

const claimSpec: PersistentVolumeClaim['spec'] = {
  accessModes: ['ReadWriteOnce'],
  storageClassName: '',
  resources: { requests: { storage: '1Gi' } },
};

/** Claims and volumes `mine`, `theirs` and `mine-scratch`, a volume without a claim, and attachments to both nodes. */
async function createStorage(api: ApiClient): Promise<void> {
  await api.resource(Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'b' } });
  for (const name of ['staging', 'control'])
    await api.resource(Secret).namespace('b').create({ apiVersion: 'v1', kind: 'Secret', metadata: { name } });
  const claims = api.resource(PersistentVolumeClaim).namespace('a');
  for (const name of ['mine', 'theirs', 'mine-scratch'])
    await claims.create({ ...of(PersistentVolumeClaim, name), spec: { ...claimSpec, volumeName: name } });
  const secret = (name: string) => ({ name, namespace: 'b' });
  const driver = { driver: 'disks.example.com', volumeHandle: 'x' };
  for (const name of ['mine', 'theirs', 'free']) {
    await api.resource(PersistentVolume).create({
      ...of(PersistentVolume, name),
      spec: {
        accessModes: ['ReadWriteOnce'],
        capacity: { storage: '1Gi' },
        ...(name === 'free' ? {} : { claimRef: { namespace: 'a', name } }),
        csi: { ...driver, nodeStageSecretRef: secret('staging'), controllerExpandSecretRef: secret('control') },
      },
    });
  }
  for (const [name, nodeName] of [
    ['mine', 'n1'],
    ['theirs', 'n2'],
  ] as const)
    await api.resource(VolumeAttachment).create({
      ...of(VolumeAttachment, name),
      spec: { attacher: 'disks.example.com', nodeName, source: { persistentVolumeName: name } },
    });
}

const of = ({ apiVersion, kind }: KindDefinition, name: string) => ({ apiVersion, kind, metadata: { name } });

test('an agent that joined with a bootstrap token has what its pods use, and is refused everything else', async (t) => {
  const { plane, ask } = await joined(t);
  const { api } = plane;
  await api.resource(Namespace).create({ apiVersion: 'v1', kind: 'Namespace', metadata: { name: 'a' } });
  for (const name of ['n1', 'n2']) await api.resource(Node).create(node(name) as Node);
  const names = ['env', 'env-from', 'volume', 'projected', 'pull', 'theirs', 'unused'];
  for (const name of names) {
    await api.resource(Secret).namespace('a').create({ apiVersion: 'v1', kind: 'Secret', metadata: { name } });
    await api.resource(ConfigMap).namespace('a').create({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name } });
  }
  for (const name of ['mine', 'theirs']) {
    const account = { apiVersion: 'v1', kind: 'ServiceAccount', metadata: { name } } as const;
    await api.resource(ServiceAccount).namespace('a').create(account);
  }
  const pods = api.resource(Pod).namespace('a');
  const mine = await pods.create(
    pod('mine', 'n1', {
      serviceAccountName: 'mine',
      imagePullSecrets: [{ name: 'pull' }],
      containers: [
        {
          ...{ name: 'main', image: 'app:1' },
          env: [
            { name: 'S', valueFrom: { secretKeyRef: { name: 'env', key: 'k' } } },
            { name: 'C', valueFrom: { configMapKeyRef: { name: 'env', key: 'k' } } },
          ],
          envFrom: [{ secretRef: { name: 'env-from' } }, { configMapRef: { name: 'env-from' } }],
        },
      ],
      volumes: [
        { name: 'd', persistentVolumeClaim: { claimName: 'mine' } },
        { name: 'scratch', ephemeral: { volumeClaimTemplate: { spec: claimSpec } } },
        { name: 's', secret: { secretName: 'volume' } },
        { name: 'c', configMap: { name: 'volume' } },
        {
          name: 'p',
          projected: {
            sources: [
              { secret: { name: 'projected' } },
              { configMap: { name: 'projected' } },
              { serviceAccountToken: { path: 'token' } },
            ],
          },
        },
      ],
    }),
  );
  const boundToMine = tokenFor('mine', mine.metadata?.uid ?? '');
  t.is((await ask('POST', `${a}/serviceaccounts/mine/token`, boundToMine)).status, 201);
  await createStorage(api);
  await pods.create(
    pod('theirs', 'n2', {
      serviceAccountName: 'theirs',
      volumes: [
        { name: 'd', persistentVolumeClaim: { claimName: 'theirs' } },
        { name: 's', secret: { secretName: 'theirs' } },
        { name: 'c', configMap: { name: 'theirs' } },
      ],
    }),
  );

  for (const [method, path, body] of own) {
    const { status, message } = await ask(method, path, body);
    t.true(status === 200 || status === 201, `${method} ${path}: ${status} ${message}`);
  }
  t.true(foreign.length >= 60, `${foreign.length} attempts`);
  for (const [method, path, body] of foreign) {
    const { status, message } = await ask(method, path, body);
    t.is(status, 403, `${method} ${path}: ${status} ${message}`);
  }
  const { message } = await ask('GET', `${a}/secrets/theirs`);
  t.is(
    message,
    'secrets "theirs" is forbidden: User "system:node:n1" cannot get resource "secrets" in API group "" in the namespace "a": ' +
      "no relationship found between node 'n1' and this object",
  );

  await pods.delete('mine', { gracePeriodSeconds: 0, preconditions: { uid: mine.metadata?.uid ?? '' } });
  t.is((await ask('GET', `${a}/secrets/env`)).status, 403, 'when its pod is gone, a Secret is no longer readable');
  const bearer = { headers: { authorization: `Bearer ${token}` } };
  t.is((await ask('GET', `${a}/pods`, undefined, bearer)).status, 403, 'the bootstrap token reads no pods');
});
