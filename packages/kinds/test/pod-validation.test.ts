import test from 'ava';
import { Pod } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { create } from './helpers/writes.ts';

type Case = readonly [title: string, spec: Record<string, unknown>, causes: readonly string[]];

/** The one container of a pod with `fields` laid over it. */
const with1 = (fields: Record<string, unknown>) => ({ containers: [{ ...container, ...fields }] });
const at = 'spec.containers[0]';

function table(group: string, cases: readonly Case[]): void {
  for (const [title, spec, causes] of cases) {
    test(`${group}: ${title}`, (t) => {
      t.deepEqual(create(Pod, podManifest(spec)).causes, causes);
    });
  }
}

table('containers', [
  ['the smallest pod', {}, []],
  ['none', { containers: [] }, ['spec.containers Required']],
  ['absent', { containers: undefined }, ['spec.containers Required']],
  ['no name', { containers: [{ image: 'a' }] }, [`${at}.name Required`]],
  ['a name that is no DNS label', with1({ name: 'My_App' }), [`${at}.name Invalid`]],
  ['a name twice', { containers: [container, container] }, ['spec.containers[1].name Duplicate']],
  ['a name of an init container', { initContainers: [container] }, ['spec.initContainers[0].name Duplicate']],
  ['no image', { containers: [{ name: 'app' }] }, [`${at}.image Required`]],
  ['blanks around the image', with1({ image: ' nginx ' }), [`${at}.image Invalid`]],
  ['unknown pull policy', with1({ imagePullPolicy: 'Sometimes' }), [`${at}.imagePullPolicy NotSupported`]],
  [
    'unknown message policy',
    with1({ terminationMessagePolicy: 'Shout' }),
    [`${at}.terminationMessagePolicy NotSupported`],
  ],
  ['a restart policy of its own', with1({ restartPolicy: 'Always' }), [`${at}.restartPolicy Forbidden`]],
  [
    'an init container with a probe',
    { initContainers: [{ ...container, name: 'i', livenessProbe: { exec: { command: ['x'] } } }] },
    ['spec.initContainers[0].livenessProbe Forbidden'],
  ],
  [
    'a sidecar with a probe',
    {
      initContainers: [
        { ...container, name: 'i', restartPolicy: 'Always', livenessProbe: { exec: { command: ['x'] } } },
      ],
    },
    [],
  ],
  [
    'an ephemeral container',
    { ephemeralContainers: [{ ...container, name: 'e' }] },
    ['spec.ephemeralContainers Forbidden'],
  ],
]);

table('ports', [
  [
    'numbers, names and protocols',
    with1({
      ports: [
        { containerPort: 80, name: 'http' },
        { containerPort: 53, protocol: 'UDP' },
      ],
    }),
    [],
  ],
  ['no number', with1({ ports: [{ name: 'http' }] }), [`${at}.ports[0].containerPort Required`]],
  ['number too large', with1({ ports: [{ containerPort: 65536 }] }), [`${at}.ports[0].containerPort Invalid`]],
  [
    'name too long',
    with1({ ports: [{ containerPort: 1, name: 'abcdefghijklmnop' }] }),
    [`${at}.ports[0].name Invalid`],
  ],
  ['name without a letter', with1({ ports: [{ containerPort: 1, name: '123' }] }), [`${at}.ports[0].name Invalid`]],
  [
    'name twice',
    with1({
      ports: [
        { containerPort: 1, name: 'a' },
        { containerPort: 2, name: 'a' },
      ],
    }),
    [`${at}.ports[1].name Duplicate`],
  ],
  [
    'unknown protocol',
    with1({ ports: [{ containerPort: 1, protocol: 'tcp' }] }),
    [`${at}.ports[0].protocol NotSupported`],
  ],
  [
    'host port of another container',
    {
      containers: [
        { ...container, ports: [{ containerPort: 80, hostPort: 80 }] },
        { ...container, name: 'b', ports: [{ containerPort: 81, hostPort: 80 }] },
      ],
    },
    ['spec.containers[1].ports[0].hostPort Duplicate'],
  ],
  [
    'host network with another host port',
    { hostNetwork: true, ...with1({ ports: [{ containerPort: 80, hostPort: 81 }] }) },
    [`${at}.ports[0].hostPort Invalid`],
  ],
  ['a host IP is not checked', with1({ ports: [{ containerPort: 80, hostPort: 80, hostIP: 'here' }] }), []],
]);

table('environment', [
  [
    'every source',
    with1({
      env: [
        { name: 'A', value: 'x' },
        { name: 'B', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
        { name: 'C', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
        { name: 'D', valueFrom: { configMapKeyRef: { name: 'c', key: 'k.x' } } },
        { name: 'E', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } },
      ],
      envFrom: [{ configMapRef: { name: 'c' } }, { prefix: 'P_', secretRef: { name: 's' } }],
    }),
    [],
  ],
  ['no name', with1({ env: [{ value: 'x' }] }), [`${at}.env[0].name Required`]],
  ['a name with =', with1({ env: [{ name: 'A=B' }] }), [`${at}.env[0].name Invalid`]],
  [
    'value and source',
    with1({ env: [{ name: 'A', value: 'x', valueFrom: { fieldRef: { fieldPath: 'metadata.name' } } }] }),
    [`${at}.env[0].valueFrom Invalid`],
  ],
  ['no source', with1({ env: [{ name: 'A', valueFrom: {} }] }), [`${at}.env[0].valueFrom Invalid`]],
  [
    'two sources',
    with1({
      env: [
        { name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' }, configMapKeyRef: { name: 's', key: 'k' } } },
      ],
    }),
    [`${at}.env[0].valueFrom Invalid`],
  ],
  [
    'unknown field',
    with1({ env: [{ name: 'A', valueFrom: { fieldRef: { fieldPath: 'spec.secret' } } }] }),
    [`${at}.env[0].valueFrom.fieldRef.fieldPath NotSupported`],
  ],
  [
    'key that is no file name',
    with1({ env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'a/b' } } }] }),
    [`${at}.env[0].valueFrom.secretKeyRef.key Invalid`],
  ],
  [
    'divisor of bytes for cpu',
    with1({ env: [{ name: 'A', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1Mi' } } }] }),
    [`${at}.env[0].valueFrom.resourceFieldRef.divisor NotSupported`],
  ],
  ['envFrom without a source', with1({ envFrom: [{ prefix: 'A' }] }), [`${at}.envFrom[0] Invalid`]],
]);

const handler = { httpGet: { port: 80 } };
table('probes and hooks', [
  [
    'complete',
    with1({
      livenessProbe: handler,
      readinessProbe: { tcpSocket: { port: 'http' } },
      startupProbe: { grpc: { port: 1 } },
    }),
    [],
  ],
  ['no handler', with1({ livenessProbe: {} }), [`${at}.livenessProbe Required`]],
  [
    'two handlers',
    with1({ livenessProbe: { ...handler, exec: { command: ['x'] } } }),
    [`${at}.livenessProbe.httpGet Forbidden`],
  ],
  ['empty command', with1({ livenessProbe: { exec: {} } }), [`${at}.livenessProbe.exec.command Required`]],
  ['port 0', with1({ livenessProbe: { httpGet: { port: 0 } } }), [`${at}.livenessProbe.httpGet.port Invalid`]],
  [
    'unknown scheme',
    with1({ livenessProbe: { httpGet: { port: 1, scheme: 'http' } } }),
    [`${at}.livenessProbe.httpGet.scheme NotSupported`],
  ],
  [
    'bad header',
    with1({ livenessProbe: { httpGet: { port: 1, httpHeaders: [{ name: 'a b', value: '' }] } } }),
    [`${at}.livenessProbe.httpGet.httpHeaders Invalid`],
  ],
  [
    'negative number',
    with1({ readinessProbe: { ...handler, periodSeconds: -1 } }),
    [`${at}.readinessProbe.periodSeconds Invalid`],
  ],
  [
    'several successes for liveness',
    with1({ livenessProbe: { ...handler, successThreshold: 2 } }),
    [`${at}.livenessProbe.successThreshold Invalid`],
  ],
  ['several successes for readiness', with1({ readinessProbe: { ...handler, successThreshold: 2 } }), []],
  [
    'grace of a readiness probe',
    with1({ readinessProbe: { ...handler, terminationGracePeriodSeconds: 3 } }),
    [`${at}.readinessProbe.terminationGracePeriodSeconds Invalid`],
  ],
  ['hook without handler', with1({ lifecycle: { preStop: {} } }), [`${at}.lifecycle.preStop Required`]],
  [
    'hook that sleeps too long',
    with1({ lifecycle: { preStop: { sleep: { seconds: 31 } } } }),
    [`${at}.lifecycle.preStop.sleep Invalid`],
  ],
]);

// A limit without a request is also the request, so both are refused.
table('resources', [
  [
    'requests below limits',
    with1({ resources: { requests: { cpu: '0.1' }, limits: { cpu: '200m', 'nvidia.com/gpu': '1' } } }),
    [],
  ],
  [
    'request above limit',
    with1({ resources: { requests: { cpu: '1' }, limits: { cpu: '500m' } } }),
    [`${at}.resources.requests Invalid`],
  ],
  [
    'negative',
    with1({ resources: { limits: { memory: '-1' } } }),
    [`${at}.resources.limits[memory] Invalid`, `${at}.resources.requests[memory] Invalid`],
  ],
  [
    'unknown plain name',
    with1({ resources: { limits: { disk: '1' } } }),
    ['limits', 'limits', 'requests', 'requests'].map((field) => `${at}.resources.${field}[disk] Invalid`),
  ],
  [
    'part of a device',
    with1({ resources: { limits: { 'x.io/gpu': '500m' } } }),
    [`${at}.resources.limits[x.io/gpu] Invalid`, `${at}.resources.requests[x.io/gpu] Invalid`],
  ],
  [
    'device request other than its limit',
    with1({ resources: { requests: { 'x.io/gpu': '1' }, limits: { 'x.io/gpu': '2' } } }),
    [`${at}.resources.requests Invalid`],
  ],
  ['no quantity', with1({ resources: { limits: { cpu: 'much' } } }), [`${at}.resources.limits[cpu] Invalid`]],
  ['unknown claim', with1({ resources: { claims: [{ name: 'c' }] } }), [`${at}.resources.claims[0] NotFound`]],
]);

const v = (source: Record<string, unknown>) => ({ volumes: [{ name: 'v', ...source }] });
table('volumes', [
  [
    'every local source',
    {
      volumes: [
        { name: 'a' },
        { name: 'b', hostPath: { path: '/x', type: 'Directory' } },
        { name: 'c', secret: { secretName: 's', items: [{ key: 'k', path: 'a/b' }] } },
        { name: 'd', configMap: { name: 'c' } },
        { name: 'e', downwardAPI: { items: [{ path: 'l', fieldRef: { fieldPath: 'metadata.labels' } }] } },
        { name: 'f', projected: { sources: [{ serviceAccountToken: { path: 't' } }, { configMap: { name: 'c' } }] } },
        { name: 'g', persistentVolumeClaim: { claimName: 'c' } },
        { name: 'h', nfs: { server: 's', path: '/p' } },
        { name: 'i', csi: { driver: 'd.example.com' } },
      ],
      ...with1({
        volumeMounts: [
          { name: 'a', mountPath: '/a', subPath: 'x/y' },
          { name: 'b', mountPath: '/b' },
        ],
      }),
    },
    [],
  ],
  ['no name', { volumes: [{ emptyDir: {} }] }, ['spec.volumes[0].name Required']],
  ['name twice', { volumes: [{ name: 'v' }, { name: 'v' }] }, ['spec.volumes[1].name Duplicate']],
  ['two sources', v({ emptyDir: {}, hostPath: { path: '/' } }), ['spec.volumes[0].emptyDir Forbidden']],
  ['host path with ..', v({ hostPath: { path: '/a/../b' } }), ['spec.volumes[0].hostPath.path Invalid']],
  [
    'unknown host path type',
    v({ hostPath: { path: '/a', type: 'Pipe' } }),
    ['spec.volumes[0].hostPath.type NotSupported'],
  ],
  ['secret without name', v({ secret: {} }), ['spec.volumes[0].secret.secretName Required']],
  ['mode', v({ secret: { secretName: 's', defaultMode: 512 } }), ['spec.volumes[0].secret.defaultMode Invalid']],
  [
    'file outside',
    v({ configMap: { name: 'c', items: [{ key: 'k', path: '../x' }] } }),
    ['spec.volumes[0].configMap.items[0].path Invalid'],
  ],
  [
    'absolute file',
    v({ configMap: { name: 'c', items: [{ key: 'k', path: '/x' }] } }),
    ['spec.volumes[0].configMap.items[0].path Invalid'],
  ],
  [
    'reserved file',
    v({ configMap: { name: 'c', items: [{ key: 'k', path: '..data' }] } }),
    ['spec.volumes[0].configMap.items[0].path Invalid'],
  ],
  [
    'downward file of nothing',
    v({ downwardAPI: { items: [{ path: 'l' }] } }),
    ['spec.volumes[0].downwardAPI.items[0] Required'],
  ],
  [
    'nfs without server',
    v({ nfs: { path: 'p' } }),
    ['spec.volumes[0].nfs.server Required', 'spec.volumes[0].nfs.path Invalid'],
  ],
  [
    'short-lived token',
    v({ projected: { sources: [{ serviceAccountToken: { path: 't', expirationSeconds: 60 } }] } }),
    ['spec.volumes[0].projected.sources[0].serviceAccountToken.expirationSeconds Invalid'],
  ],
  [
    'two files of one name',
    v({
      projected: {
        sources: [
          { configMap: { name: 'c', items: [{ key: 'k', path: 't' }] } },
          { secret: { name: 's', items: [{ key: 'k', path: 't' }] } },
        ],
      },
    }),
    ['spec.volumes[0].projected Invalid'],
  ],
  [
    'mount of nothing',
    with1({ volumeMounts: [{ name: 'x', mountPath: '/x' }] }),
    [`${at}.volumeMounts[0].name NotFound`],
  ],
  [
    'a volume that is mounted and a device',
    {
      volumes: [{ name: 'v', persistentVolumeClaim: { claimName: 'c' } }],
      ...with1({
        volumeMounts: [{ name: 'v', mountPath: '/x' }],
        volumeDevices: [{ name: 'v', devicePath: '/dev/x' }],
      }),
    },
    [`${at}.volumeMounts[0].name Invalid`, `${at}.volumeDevices[0].name Invalid`],
  ],
  [
    'mount without path',
    { ...v({}), ...with1({ volumeMounts: [{ name: 'v' }] }) },
    [`${at}.volumeMounts[0].mountPath Required`],
  ],
  [
    'path twice',
    {
      ...v({}),
      ...with1({
        volumeMounts: [
          { name: 'v', mountPath: '/x' },
          { name: 'v', mountPath: '/x' },
        ],
      }),
    },
    [`${at}.volumeMounts[1].mountPath Invalid`],
  ],
  [
    'sub-path outside',
    { ...v({}), ...with1({ volumeMounts: [{ name: 'v', mountPath: '/x', subPath: 'a/../../b' }] }) },
    [`${at}.volumeMounts[0].subPath Invalid`],
  ],
  [
    'propagation both ways without privilege',
    { ...v({}), ...with1({ volumeMounts: [{ name: 'v', mountPath: '/x', mountPropagation: 'Bidirectional' }] }) },
    [`${at}.volumeMounts[0].mountPropagation Forbidden`],
  ],
  [
    'device that is no claim',
    { ...v({}), ...with1({ volumeDevices: [{ name: 'v', devicePath: '/dev/x' }] }) },
    [`${at}.volumeDevices[0].name Invalid`],
  ],
]);

const term = { topologyKey: 'zone', labelSelector: { matchLabels: { a: 'b' } } };
table('scheduling', [
  [
    'tolerations',
    { tolerations: [{ operator: 'Exists' }, { key: 'a', value: 'b', effect: 'NoExecute', tolerationSeconds: 3 }] },
    [],
  ],
  ['toleration without key', { tolerations: [{ value: 'x' }] }, ['spec.tolerations[0].operator Invalid']],
  [
    'seconds without eviction',
    { tolerations: [{ key: 'a', tolerationSeconds: 3 }] },
    ['spec.tolerations[0].effect Invalid'],
  ],
  [
    'value that exists',
    { tolerations: [{ key: 'a', operator: 'Exists', value: 'x' }] },
    ['spec.tolerations[0].operator Invalid'],
  ],
  ['unknown effect', { tolerations: [{ key: 'a', effect: 'Never' }] }, ['spec.tolerations[0].effect NotSupported']],
  ['node selector', { nodeSelector: { 'a b': 'c' } }, ['spec.nodeSelector Invalid']],
  [
    'node affinity without terms',
    { affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [] } } } },
    ['spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms Required'],
  ],
  [
    'weight and values',
    {
      affinity: {
        nodeAffinity: {
          preferredDuringSchedulingIgnoredDuringExecution: [
            { weight: 0, preference: { matchExpressions: [{ key: 'a', operator: 'In' }] } },
          ],
        },
      },
    },
    [
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight Invalid',
      'spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].values Required',
    ],
  ],
  ['pod affinity', { affinity: { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [term] } } }, []],
  [
    'pod affinity without place',
    {
      affinity: { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: [{ ...term, topologyKey: '' }] } },
    },
    ['Required', 'Invalid', 'Invalid'].map(
      (reason) =>
        `spec.affinity.podAntiAffinity.requiredDuringSchedulingIgnoredDuringExecution[0].topologyKey ${reason}`,
    ),
  ],
  [
    'spread',
    { topologySpreadConstraints: [{ ...term, maxSkew: 0, whenUnsatisfiable: 'Perhaps' }] },
    [
      'spec.topologySpreadConstraints[0].maxSkew Invalid',
      'spec.topologySpreadConstraints[0].whenUnsatisfiable NotSupported',
    ],
  ],
  ['gates with a node', { nodeName: 'n', schedulingGates: [{ name: 'x.io/g' }] }, ['spec.nodeName Forbidden']],
]);

table('pod', [
  ['unknown restart policy', { restartPolicy: 'Maybe' }, ['spec.restartPolicy NotSupported']],
  ['unknown DNS policy', { dnsPolicy: 'Mine' }, ['spec.dnsPolicy NotSupported']],
  ['DNS None without servers', { dnsPolicy: 'None' }, ['spec.dnsConfig Required']],
  ['DNS None with an empty config', { dnsPolicy: 'None', dnsConfig: {} }, ['spec.dnsConfig.nameservers Required']],
  [
    'DNS None',
    {
      dnsPolicy: 'None',
      dnsConfig: { nameservers: ['1.1.1.1'], searches: ['a.example.'], options: [{ name: 'ndots' }] },
    },
    [],
  ],
  ['server that is no address', { dnsConfig: { nameservers: ['dns'] } }, ['spec.dnsConfig.nameservers[0] Invalid']],
  [
    'host alias',
    { hostAliases: [{ ip: '300.1.1.1', hostnames: ['a.b', 'A'] }] },
    ['spec.hostAliases[0].ip Invalid', 'spec.hostAliases[0].hostnames[1] Invalid'],
  ],
  ['no deadline at all', { activeDeadlineSeconds: 0 }, ['spec.activeDeadlineSeconds Invalid']],
  ['account name', { serviceAccountName: 'A' }, ['spec.serviceAccountName Invalid']],
  ['host name', { hostname: 'a.b', subdomain: 'ok' }, ['spec.hostname Invalid']],
  ['shared and host processes', { shareProcessNamespace: true, hostPID: true }, ['spec.shareProcessNamespace Invalid']],
  [
    'user ids',
    { securityContext: { runAsUser: -1, supplementalGroups: [1, 2147483648] } },
    ['spec.securityContext.runAsUser Invalid', 'spec.securityContext.supplementalGroups[1] Invalid'],
  ],
  [
    'sysctl twice',
    {
      securityContext: {
        sysctls: [
          { name: 'a.b', value: '1' },
          { name: 'a.b', value: '2' },
        ],
      },
    },
    ['spec.securityContext.sysctls[1].name Duplicate'],
  ],
  [
    'escalation of the privileged',
    with1({ securityContext: { privileged: true, allowPrivilegeEscalation: false } }),
    [`${at}.securityContext.allowPrivilegeEscalation Invalid`],
  ],
  [
    'local profile without file',
    with1({ securityContext: { seccompProfile: { type: 'Localhost' } } }),
    [`${at}.securityContext.seccompProfile.localhostProfile Required`],
  ],
  ['windows with linux notions', { os: { name: 'windows' }, hostPID: true }, ['spec.hostPID Forbidden']],
]);
