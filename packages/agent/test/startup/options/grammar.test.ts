import { defaultText, UsageError } from '@keelson/core/internal';
import test from 'ava';
import { featureGates, gateText, resolveGates } from '../../../src/startup/options/feature-gates.ts';
import { helpText } from '../../../src/startup/options/help.ts';
import type { AgentOptions, OptionName } from '../../../src/startup/options/option-table.ts';
import { optionTable } from '../../../src/startup/options/option-table.ts';
import { deprecationWarnings, parseOptions } from '../../../src/startup/options/parse-options.ts';

const value = <N extends OptionName>(name: N, ...words: string[]): AgentOptions[N] => parseOptions(words).values[name];

const accepts = test.macro({
  exec(t, words: readonly string[], name: OptionName, expected: unknown) {
    const found: unknown = value(name, ...words);
    t.deepEqual(found instanceof Map ? [...found] : found, expected);
  },
  title: (_, words: readonly string[] = []) => `reads ${words.join(' ')}`,
});

const refuses = test.macro({
  exec(t, words: readonly string[], message: RegExp) {
    t.throws(() => parseOptions(words), { instanceOf: UsageError, message });
  },
  title: (_, words: readonly string[] = []) => `refuses ${words.join(' ')}`,
});

test(accepts, ['--port=4000'], 'port', 4000);
test(accepts, ['--port', '4000'], 'port', 4000);
test(accepts, ['--port', '-5'], 'port', -5);
test(accepts, ['--port', '0x1F'], 'port', 31);
test(accepts, ['--port=017'], 'port', 15);
test(accepts, ['--port=0b11'], 'port', 3);
test(accepts, ['--port=-2147483648'], 'port', -2_147_483_648);
test(accepts, ['--port=1', '--port=2'], 'port', 2);
test(accepts, ['--read_only_port=3'], 'read-only-port', 3);
test(accepts, ['--manifest-url', '--x'], 'manifest-url', '--x');
test(refuses, ['--manifest-url', '--runonce'], /--manifest-url requires a value: --manifest-url string/);
test(refuses, ['--port'], /--port requires a value: --port int32/);
test(refuses, ['--port='], /--port must be a whole number/);
test(refuses, ['--port=2147483648'], /--port must be between -2147483648 and 2147483647/);
test(refuses, ['--port=1.5'], /--port must be a whole number/);
test(refuses, ['--port=089'], /--port must be a whole number/);

for (const word of ['1', 't', 'T', 'TRUE', 'true', 'True']) test(accepts, [`--runonce=${word}`], 'runonce', true);
for (const word of ['0', 'f', 'F', 'FALSE', 'false', 'False'])
  test(accepts, [`--anonymous-auth=${word}`], 'anonymous-auth', false);
test(accepts, ['--runonce', '--port=1'], 'runonce', true);
test(refuses, ['--runonce', 'true'], /unexpected argument "true"/);
test(refuses, ['--runonce=yes'], /--runonce must be true or false, not "yes"/);
test(refuses, ['--runonce='], /--runonce must be true or false/);

test(accepts, ['--sync-frequency=1h30m0.5s'], 'sync-frequency', 5_400_500);
test(accepts, ['--sync-frequency=300ms'], 'sync-frequency', 300);
test(accepts, ['--sync-frequency=0'], 'sync-frequency', 0);
test(accepts, ['--sync-frequency=-1.5s'], 'sync-frequency', -1500);
test(refuses, ['--sync-frequency=10'], /--sync-frequency must be a duration such as .*missing unit/);
test(refuses, ['--sync-frequency=1d'], /unknown unit "d"/);

test(accepts, ['--cluster-dns=10.0.0.1,10.0.0.2', '--cluster-dns=10.0.0.3'], 'cluster-dns', [
  '10.0.0.1',
  '10.0.0.2',
  '10.0.0.3',
]);
test(accepts, ['--host-pid-sources=file'], 'host-pid-sources', ['file']);
test(accepts, ['--host-pid-sources='], 'host-pid-sources', []);
test(accepts, ['--cluster-dns="a,b","say ""x""",c'], 'cluster-dns', ['a,b', 'say "x"', 'c']);
test(accepts, ['--cluster-dns=a,'], 'cluster-dns', ['a', '']);
test(refuses, ['--cluster-dns="a'], /has a misplaced quote/);

test(accepts, ['--cluster-reserved= cpu = 1 ,,memory=1=2', '--cluster-reserved=cpu=2'], 'cluster-reserved', [
  ['cpu', '2'],
  ['memory', '1=2'],
]);
test(accepts, ['--node-labels=a,b=c,__proto__=d'], 'node-labels', [
  ['a', ''],
  ['b', 'c'],
  ['__proto__', 'd'],
]);
test(refuses, ['--cluster-reserved=cpu'], /malformed pair, expect string=string: "cpu"/);
test(refuses, ['--feature-gates=PodPriority'], /malformed pair, expect string=bool/);
test(refuses, ['--feature-gates=PodPriority=maybe'], /malformed pair, expect string=bool: "maybe"/);
test(accepts, ['--eviction-hard=memory.available<1Gi'], 'eviction-hard', [['memory.available', '1Gi']]);
test(refuses, ['--eviction-hard=memory.available=1Gi'], /malformed pair, expect string<string/);

test(accepts, ['--manifest-url-header=A:1,B:x:y', '--manifest-url-header=A: 2 '], 'manifest-url-header', [
  ['A', '1'],
  ['B', 'x:y'],
  ['A', '2'],
]);
test(refuses, ['--manifest-url-header=no-colon'], /must be name:value/);
test(refuses, ['--manifest-url-header=a b:c'], /an invalid HTTP header name/);
test(refuses, ['--manifest-url-header=a:b\r\nc'], /characters that are invalid in an HTTP header/);

test(accepts, ['--address=::1'], 'address', '::1');
test(refuses, ['--address=localhost'], /--address must be an IP address/);
test(accepts, ['--chaos-chance=.25'], 'chaos-chance', 0.25);
test(refuses, ['--chaos-chance=Infinity'], /--chaos-chance must be a number/);

test(
  accepts,
  ['--register-with-taints=a=b:NoSchedule,example.com/c=:NoExecute', '--register-with-taints=d:PreferNoSchedule'],
  'register-with-taints',
  [
    { key: 'a', value: 'b', effect: 'NoSchedule' },
    { key: 'example.com/c', effect: 'NoExecute' },
    { key: 'd', effect: 'PreferNoSchedule' },
  ],
);
test(refuses, ['--register-with-taints=a=b'], /must be key=value:effect/);
test(
  refuses,
  ['--register-with-taints=a=b:Never'],
  /unknown effect "Never"; use one of NoSchedule, PreferNoSchedule, NoExecute/,
);
test(refuses, ['--register-with-taints=-a=b:NoSchedule'], /has an invalid taint/);
test(refuses, ['--register-with-taints=a=b:NoSchedule,a=c:NoSchedule'], /contains the taint a:NoSchedule twice/);

test(accepts, ['--version'], 'version', 'line');
test(accepts, ['--version=true'], 'version', 'line');
test(accepts, ['--version=raw'], 'version', 'raw');
test(accepts, ['--version=false'], 'version', 'none');

test(refuses, ['--pod-manifest-pth=/x'], /^unknown option --pod-manifest-pth; did you mean --pod-manifest-path\?$/);
test(refuses, ['--zzzzzzzzzzzz'], /^unknown option --zzzzzzzzzzzz; see/);
test(refuses, [`--${'z'.repeat(5000)}`], /^unknown option/);
test(refuses, ['-port=3'], /unexpected argument "-port=3"/);
test(refuses, ['--'], /unexpected argument "--"/);
test(refuses, ['--__proto__=1'], /unknown option/);

test('a deprecated option has an effect and causes one warning', (t) => {
  const parsed = parseOptions(['--experimental-bootstrap-clusterconfig=a', '--experimental-bootstrap-clusterconfig=b']);
  t.is(parsed.values['experimental-bootstrap-clusterconfig'], 'b');
  t.deepEqual(deprecationWarnings(parsed), [
    '--experimental-bootstrap-clusterconfig is deprecated: use --bootstrap-clusterconfig',
  ]);
});

test('the defaults of all options can be formatted and parsed again', (t) => {
  for (const row of optionTable) {
    const text = row.type.format(row.default);
    if (row.name === 'version') continue;
    const given = row.type.name === 'stringSlice' ? text.replace(/^\[|\]$/g, '') : text;
    t.deepEqual(row.type.parse(given, row.name), row.default, row.name);
  }
});

test('help names every option with type and default, and every gate with its stage', (t) => {
  const help = helpText();
  for (const row of optionTable) t.true(help.includes(`  --${row.name} ${row.type.name}`), row.name);
  for (const gate of featureGates) t.true(help.includes(gateText(gate)), gate.name);
  t.true(help.includes('--streaming-connection-idle-timeout duration (default 4h0m0s)'));
  t.true(help.includes('PodPriority=true|false (ALPHA - default=false)'));
  t.true(help.includes('AllowExtTrafficLocalEndpoints=true|false (default=true)'));
  t.is(
    defaultText(optionTable.find(({ name }) => name === 'eviction-hard')!),
    'imagefs.available<15%,memory.available<100Mi,nodefs.available<10%,nodefs.inodesFree<5%',
  );
});

test('AllAlpha enables every alpha gate that is not named, and no other, independent of the order', (t) => {
  for (const pairs of [
    ['AllAlpha', 'PodPriority'],
    ['PodPriority', 'AllAlpha'],
  ]) {
    const gates = resolveGates(new Map(pairs.map((name) => [name, name === 'AllAlpha'])));
    t.false(gates['PodPriority']);
    t.true(gates['DevicePlugins']);
    t.false(gates['SupportIPVSProxyMode'], 'beta gates stay');
    t.true(gates['AllowExtTrafficLocalEndpoints']);
  }
  t.true(
    resolveGates(
      new Map([
        ['AllAlpha', false],
        ['DevicePlugins', true],
      ]),
    )['DevicePlugins'],
  );
  t.throws(() => resolveGates(new Map([['PodPriorty', true]])), {
    message: /unrecognized key: PodPriorty; did you mean PodPriority\?/,
  });
});
