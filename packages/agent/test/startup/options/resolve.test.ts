import { UsageError } from '@keelson/core/internal';
import test from 'ava';
import { parseOptions } from '../../../src/startup/options/parse-options.ts';
import { type HostFacts, resolveConfig } from '../../../src/startup/options/resolve-config.ts';

const bare: HostFacts = { hostname: () => 'Node-1 ', fileExists: () => false };
const resolve = (words: readonly string[], machine = bare) => resolveConfig(parseOptions(words), machine);
const configOf = (words: readonly string[], machine = bare) => resolve(words, machine).config;

const refuses = test.macro({
  exec(t, words: readonly string[], message: RegExp) {
    t.throws(() => resolve(words), { instanceOf: UsageError, message });
  },
  title: (_, words: readonly string[] = []) => `refuses ${words.join(' ')}`,
});

test('the default options result in a valid configuration', (t) => {
  const { config, warnings } = resolve([]);
  t.deepEqual(warnings, []);
  t.is(config.nodeName, 'node-1');
  t.is(config.api, undefined, 'no file, no API server');
  t.like(config.server, { enabled: true, address: '0.0.0.0', port: 10_250, readOnlyPort: 10_255, healthzPort: 10_248 });
  t.like(config.sources, { fileCheckMs: 20_000, httpCheckMs: 20_000, manifestPath: undefined, hostNetwork: ['*'] });
  t.like(config.runtime, { kind: 'default' });
  t.deepEqual(config.limits, { maxPods: 110, podsPerCore: 0, allowPrivileged: false });
});

// Ranges.
test(refuses, ['--port=65536'], /--port must be between 0 and 65535, not 65536/);
test(refuses, ['--healthz-port=-1'], /--healthz-port must be between/);
test(refuses, ['--stats-port=10248'], /--healthz-port and --stats-port must differ, both are 10248/);
test(refuses, ['--read-only-port=10250'], /--port and --read-only-port must differ, both are 10250/);
test(refuses, ['--image-gc-high-threshold=101'], /--image-gc-high-threshold must be between 0 and 100/);
test(
  refuses,
  ['--image-gc-low-threshold=90'],
  /--image-gc-low-threshold \(90\) must not be above --image-gc-high-threshold \(85\)/,
);
test(refuses, ['--iptables-drop-bit=32'], /--iptables-drop-bit must be between 0 and 31/);
test(refuses, ['--iptables-drop-bit=14'], /--iptables-drop-bit and --iptables-masquerade-bit must differ/);
test(refuses, ['--oom-score-adj=1001'], /--oom-score-adj must be between -1000 and 1000/);
test(refuses, ['--max-pods=-1'], /--max-pods must be at least 0, not -1/);
test(refuses, ['--pods-per-core=-1'], /--pods-per-core must be at least 0/);
test(refuses, ['--max-open-files=-1'], /--max-open-files must be at least 0/);
for (const name of [
  'registry-qps',
  'registry-burst',
  'cluster-api-qps',
  'cluster-api-burst',
  'event-qps',
  'event-burst',
]) {
  test(refuses, [`--${name}=-1`], new RegExp(`--${name} must be at least 0`));
}
for (const name of [
  'sync-frequency',
  'file-check-frequency',
  'http-check-frequency',
  'node-status-update-frequency',
  'runtime-request-timeout',
  'image-pull-progress-deadline',
]) {
  test(refuses, [`--${name}=0`], new RegExp(`--${name} must be longer than 0`));
}

// Values of a fixed set.
test(
  refuses,
  ['--container-runtime=runtime-c'],
  /--container-runtime: unsupported value "runtime-c"; did you mean runtime-a\?/,
);
test(refuses, ['--authorization-mode=RBAC'], /--authorization-mode: unsupported value/);
test(refuses, ['--hairpin-mode=bridge'], /--hairpin-mode: unsupported value/);
test(refuses, ['--cgroup-driver=none'], /--cgroup-driver: unsupported value/);
test(refuses, ['--cluster-api-content-type=text/plain'], /--cluster-api-content-type: unsupported value/);
for (const name of ['host-network-sources', 'host-pid-sources', 'host-ipc-sources']) {
  test(
    refuses,
    [`--${name}=file,disk`],
    new RegExp(`--${name}: unsupported value "disk"; use one of file, http, api, \\*`),
  );
}
test(refuses, ['--container-runtime-endpoint=tcp://1.2.3.4:5'], /--container-runtime-endpoint must be a unix socket/);
test(refuses, ['--runtime-a-endpoint=/var/run/x.sock'], /--runtime-a-endpoint must be a unix socket/);
test(
  refuses,
  ['--container-runtime=runtime-b', '--runtime-b-api-endpoint=localhost'],
  /--runtime-b-api-endpoint must be HOST:PORT/,
);
for (const endpoint of [
  '0.0.0.0:15441',
  '192.0.2.1:15441',
  '[::]:15441',
  'example.test:15441',
  '127.evil.test:15441',
]) {
  test(
    refuses,
    ['--container-runtime=runtime-b', `--runtime-b-api-endpoint=${endpoint}`],
    /must be a loopback address/,
  );
}
test('--runtime-b-api-endpoint may be any loopback address', (t) => {
  for (const endpoint of ['localhost:1', '127.0.0.2:15441', '[::1]:15441'])
    t.like(configOf(['--container-runtime=runtime-b', `--runtime-b-api-endpoint=${endpoint}`]).runtime, {
      supervisorEndpoint: endpoint,
    });
});
test(refuses, ['--image-service-endpoint=unix:///i'], /--image-service-endpoint needs --container-runtime-endpoint/);
test(refuses, ['--pod-infra-container-image='], /--pod-infra-container-image must name an image/);
test(refuses, ['--cluster-dns=dns.example'], /--cluster-dns must be IP addresses/);
test(refuses, ['--cluster-domain=a_b'], /--cluster-domain: /);
test(refuses, ['--node-ip=node'], /--node-ip must be an IP address/);
test(refuses, ['--hostname-override=a_b'], /--hostname-override: /);
test(refuses, ['--node-labels=-bad=x'], /--node-labels: "-bad"/);
test(refuses, ['--manifest-url=ftp://x'], /--manifest-url must be an http or https URL/);

// Combinations of options.
test(refuses, ['--tls-cert-file=a'], /--tls-cert-file and --tls-private-key-file must be given together/);
test(refuses, ['--tls-private-key-file=a'], /must be given together/);
test(refuses, ['--cgroups-per-qos=false'], /--enforce-node-allocatable needs --cgroups-per-qos/);
test(refuses, ['--enforce-node-allocatable=pods,system-reserved'], /=system-reserved needs --system-reserved-cgroup/);
test(refuses, ['--enforce-node-allocatable=kube'], /--enforce-node-allocatable: unsupported value "kube"/);
test(refuses, ['--enforce-node-allocatable=cluster-reserved'], /=cluster-reserved needs --cluster-reserved-cgroup/);
test(refuses, ['--system-cgroups=/x'], /--system-cgroups needs --cgroup-root/);
test(refuses, ['--system-cgroups=/', '--cgroup-root=/'], /--system-cgroups must not be the root of the cgroups/);
test(refuses, ['--system-reserved-cgroup=/'], /--system-reserved-cgroup must not be the root of the cgroups/);
for (const name of ['cgroup-root', 'agent-cgroups', 'runtime-cgroups', 'system-cgroups', 'cluster-reserved-cgroup']) {
  test(refuses, [`--${name}=x`], new RegExp(`--${name} must be an absolute cgroup such as /group, not "x"`));
  test(refuses, [`--${name}=/x/../y`], new RegExp(`--${name} must be an absolute cgroup`));
}
test(
  refuses,
  ['--experimental-qos-reserved=memory=10%', '--cgroups-per-qos=false', '--enforce-node-allocatable='],
  /--experimental-qos-reserved needs --cgroups-per-qos/,
);
test('cgroup options are resolved, and options without an effect cause a warning', (t) => {
  t.deepEqual(configOf([]).cgroups, {
    perQos: true,
    driver: 'cgroupfs',
    root: undefined,
    enforce: ['pods'],
    clusterReservedGroup: '',
    systemReservedGroup: '',
    reservedMemoryPercent: undefined,
    agentGroup: '',
    runtimeGroup: '',
    systemGroup: '',
    askedBy: undefined,
  });
  t.like(configOf(['--cgroup-root=/a', '--experimental-qos-reserved=memory=50%', '--cgroups-per-qos=true']).cgroups, {
    root: '/a',
    reservedMemoryPercent: 50,
    askedBy: 'cgroups-per-qos',
  });
  t.is(configOf(['--cgroups-per-qos=false', '--enforce-node-allocatable=']).cgroups.askedBy, undefined);
  const words = ['--cgroups-per-qos=false', '--enforce-node-allocatable=', '--cgroup-driver=systemd'];
  t.deepEqual(resolve([...words, '--cluster-reserved-cgroup=/c']).warnings, [
    '--cgroup-driver has no effect without --cgroups-per-qos',
    '--cluster-reserved-cgroup has no effect without --enforce-node-allocatable=cluster-reserved',
  ]);
});
test(
  refuses,
  ['--eviction-soft=memory.available<1Gi'],
  /memory.available needs a period in --eviction-soft-grace-period/,
);
test(refuses, ['--eviction-hard=disk.free<1Gi'], /unknown eviction signal "disk.free"/);
test(refuses, ['--eviction-hard=memory.available<0%'], /must be above 0%/);
test(refuses, ['--config=/x'], /--config needs --feature-gates=AgentConfigFile=true/);
test(refuses, ['--dynamic-config-dir=/x'], /--dynamic-config-dir needs --feature-gates=DynamicAgentConfig=true/);
test(refuses, ['--exit-on-lock-contention'], /--exit-on-lock-contention needs --lock-file/);
test(refuses, ['--authentication-token-webhook'], /--authentication-token-webhook needs --clusterconfig/);
test(refuses, ['--authorization-mode=Webhook'], /--authorization-mode=Webhook needs --clusterconfig/);
test(refuses, ['--manifest-url-header=a:b'], /--manifest-url-header needs --manifest-url/);
test(refuses, ['--runonce'], /--runonce needs --pod-manifest-path or --manifest-url/);
test(
  refuses,
  ['--runonce', '--pod-manifest-path=/x', '--enable-server'],
  /--runonce and --enable-server exclude each other/,
);
test(refuses, ['--cluster-reserved=gpu=1'], /--cluster-reserved: cannot reserve "gpu" resource/);
test(refuses, ['--system-reserved=cpu=-1'], /--system-reserved: cpu must not be negative/);
test(refuses, ['--system-reserved=cpu=lots'], /--system-reserved: cpu must be a quantity/);
test(refuses, ['--experimental-qos-reserved=cpu=50%'], /only memory can be reserved/);
test(refuses, ['--experimental-qos-reserved=memory=101%'], /must be between 0% and 100%/);
test(refuses, ['--experimental-allowed-unsafe-sysctls=vm.swappiness'], /vm.swappiness is not known to be namespaced/);
test(refuses, ['--feature-gates=Nope=true'], /unrecognized key: Nope/);

test('--contention-profiling has no effect when its handler is not served', (t) => {
  t.deepEqual(resolve(['--contention-profiling']).warnings, []);
  for (const without of ['--enable-server', '--enable-debugging-handlers']) {
    t.deepEqual(resolve(['--contention-profiling', `${without}=false`]).warnings, [
      `--contention-profiling has no effect without ${without}`,
    ]);
  }
});

test('--runonce disables the servers and the API client', (t) => {
  const config = configOf(['--runonce', '--pod-manifest-path=/x', '--clusterconfig=/c']);
  t.like(config.server, { enabled: false, readOnlyPort: 0, healthzPort: 0, statsPort: 0 });
  t.is(config.api, undefined);
  t.true(config.sources.runOnce);
  t.notThrows(() => resolve(['--runonce', '--pod-manifest-path=/x', '--enable-server=false']));
});

test('--clusterconfig is used when given, or when the file of its default exists', (t) => {
  t.is(configOf(['--clusterconfig=/c']).api?.clusterconfig, '/c');
  const there = configOf([], { ...bare, fileExists: (path) => path === '/var/lib/keelson-agent/clusterconfig' });
  t.deepEqual(there.api, {
    clusterconfig: '/var/lib/keelson-agent/clusterconfig',
    bootstrap: undefined,
    rotateCertificates: false,
    qps: 5,
    burst: 10,
    contentType: 'application/vnd.kubernetes.protobuf',
    chaosChance: 0,
  });
  t.is(configOf(['--clusterconfig='], { ...bare, fileExists: () => true }).api, undefined);
  const api = configOf([
    '--clusterconfig=/c',
    '--cluster-api-qps=1',
    '--cluster-api-burst=2',
    '--cluster-api-content-type=application/json',
  ]).api;
  t.like(api, { qps: 1, burst: 2, contentType: 'application/json' });
});

test('--bootstrap-clusterconfig, also by its deprecated name, enables the API server without a config file', (t) => {
  const file = '/var/lib/keelson-agent/clusterconfig';
  t.like(configOf(['--bootstrap-clusterconfig=/b']).api, { clusterconfig: file, bootstrap: '/b' });
  const old = resolve(['--experimental-bootstrap-clusterconfig=/b', '--clusterconfig=/c']);
  t.like(old.config.api, { clusterconfig: '/c', bootstrap: '/b' });
  t.deepEqual(old.warnings, ['--experimental-bootstrap-clusterconfig is deprecated: use --bootstrap-clusterconfig']);
});

test(refuses, ['--bootstrap-clusterconfig=/b', '--clusterconfig='], /--bootstrap-clusterconfig needs --clusterconfig/);
test(refuses, ['--bootstrap-clusterconfig=/b', '--experimental-bootstrap-clusterconfig=/c'], /name different files/);

test('--rotate-certificates requires an API server and its feature gate to have an effect', (t) => {
  const words = ['--rotate-certificates', '--clusterconfig=/c'];
  t.true(configOf(words).api?.rotateCertificates);
  t.deepEqual(resolve(words).warnings, []);
  t.deepEqual(resolve(['--rotate-certificates']).warnings, [
    '--rotate-certificates has no effect: the agent runs without an API server',
  ]);
  const off = resolve([...words, '--feature-gates=RotateAgentClientCertificate=false']);
  t.false(off.config.api?.rotateCertificates);
  t.deepEqual(off.warnings, [
    '--rotate-certificates has no effect: the feature gate RotateAgentClientCertificate is off',
  ]);
});

test('runtime options select the adapter', (t) => {
  t.deepEqual(configOf(['--runtime-a-endpoint=unix:///e.sock']).runtime, {
    kind: 'engine',
    endpoint: 'unix:///e.sock',
    shimEndpoint: 'unix:///var/run/keelson-agent/runtime.sock',
  });
  t.deepEqual(configOf(['--container-runtime-endpoint=unix:///c.sock']).runtime, {
    kind: 'cri',
    endpoint: 'unix:///c.sock',
    imageEndpoint: 'unix:///c.sock',
  });
  t.like(configOf(['--container-runtime-endpoint=unix:///c.sock', '--image-service-endpoint=unix:///i.sock']).runtime, {
    imageEndpoint: 'unix:///i.sock',
  });
  t.deepEqual(
    configOf([
      '--container-runtime=runtime-b',
      '--runtime-b-path=/usr/bin/runc',
      '--runtime-b-api-endpoint=localhost:1',
    ]).runtime,
    {
      kind: 'oci',
      path: '/usr/bin/runc',
      supervisorEndpoint: 'localhost:1',
    },
  );
});

test('options of another runtime cause a warning', (t) => {
  t.deepEqual(resolve(['--runtime-b-path=/x']).warnings, [
    '--runtime-b-path has no effect with --container-runtime=runtime-a',
  ]);
  t.deepEqual(resolve(['--container-runtime=runtime-b', '--container-runtime-endpoint=unix:///c']).warnings, [
    '--container-runtime-endpoint has no effect with --container-runtime=runtime-b',
  ]);
});

test('a warning names the gates that are set and not implemented, except gates of other programs', (t) => {
  t.deepEqual(
    resolve(['--feature-gates=CustomPodDNS=true,VolumeScheduling=true,MountPropagation=true,AppArmor=false']).warnings,
    ['--feature-gates: no effect yet: AppArmor, CustomPodDNS'],
  );
  t.deepEqual(resolve(['--feature-gates=AppArmor=true']).warnings, []);
  t.is(resolve(['--feature-gates=AllAlpha=true']).warnings.length, 1);
});

test('--hostname-override is trimmed and converted to lower case', (t) => {
  t.is(configOf(['--hostname-override= Edge-7 ']).nodeName, 'edge-7');
});

test('--cluster-reserved and --system-reserved are converted to canonical quantities', (t) => {
  const config = configOf([
    '--cluster-reserved=cpu=0.5,memory=1024Mi',
    '--system-reserved=cpu=100m,ephemeral-storage=1Gi',
  ]);
  t.deepEqual(config.clusterReserved, { cpu: '500m', memory: '1Gi' });
  t.deepEqual(config.systemReserved, { cpu: '100m', 'ephemeral-storage': '1Gi' });
});

test('option values are copied to the configuration', (t) => {
  const config = configOf([
    '--node-labels=a=b,constructor=c',
    '--register-with-taints=k=v:NoSchedule',
    '--provider-id=p',
    '--register-node=false',
    '--node-status-update-frequency=3s',
    '--max-pods=5',
    '--allow-privileged',
    '--event-qps=0',
    '--serialize-image-pulls=false',
    '--cluster-domain=cluster.local.',
    '--sync-frequency=5s',
    '--runtime-a-disable-shared-pid=false',
    '--registry-qps=1',
  ]);
  t.deepEqual(Object.entries(config.node.labels), [
    ['a', 'b'],
    ['constructor', 'c'],
  ]);
  t.like(config.node, {
    providerId: 'p',
    register: false,
    statusUpdateMs: 3000,
    taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }],
  });
  t.like(config, { syncMs: 5000, isolatePids: false, events: { qps: 0, burst: 10 } });
  t.like(config.limits, { maxPods: 5, allowPrivileged: true });
  t.like(config.images, { serializePulls: false, registryQps: 1 });
  t.is(config.dns.domain, 'cluster.local');
});
