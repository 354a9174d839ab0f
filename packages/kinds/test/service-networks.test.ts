import test from 'ava';
import { IPAddress, ServiceCIDR } from '../src/index.ts';
import { create, row, update } from './helpers/writes.ts';

const apiVersion = 'networking.k8s.io/v1';
const parentRef = { resource: 'services', namespace: 'default', name: 'web' };
const address = (name: string, reference: Record<string, unknown> = parentRef) => ({
  ...{ apiVersion, kind: 'IPAddress', metadata: { name } },
  spec: { parentRef: reference },
});
const networks = (...cidrs: string[]) => ({
  ...{ apiVersion, kind: 'ServiceCIDR', metadata: { name: 'n' } },
  spec: { cidrs },
});

test('the name of an IPAddress is an address in canonical form, and its reference is complete', (t) => {
  for (const name of ['10.0.0.1', '255.255.255.255', 'fe80::42:1dff:fe84:f9e2'])
    t.deepEqual(create(IPAddress, address(name)).messages, [], name);
  const cases: [Record<string, unknown>, readonly string[]][] = [
    [
      address('web'),
      ['metadata.name: Invalid value: "web": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)'],
    ],
    [address('10.0.0.01'), ['metadata.name: Invalid value: "10.0.0.01": must not have leading 0s']],
    [address('fd00:0::1'), ['metadata.name: Invalid value: "fd00:0::1": must be in canonical form ("fd00::1")']],
    [{ ...address('10.0.0.1'), spec: {} }, ['spec.parentRef: Required value']],
    [address('10.0.0.1', {}), ['spec.parentRef.resource: Required value', 'spec.parentRef.name: Required value']],
    [
      address('10.0.0.1', { group: 'A', resource: 'a/b', namespace: '..', name: 'c%d' }),
      [
        "spec.parentRef.group: Invalid value: \"A\": a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')",
        'spec.parentRef.resource: Invalid value: "a/b": may not contain \'/\'',
        'spec.parentRef.name: Invalid value: "c%d": may not contain \'%\'',
        'spec.parentRef.namespace: Invalid value: "..": may not be \'..\'',
      ],
    ],
  ];
  for (const [manifest, expected] of cases) t.deepEqual(create(IPAddress, manifest).messages, expected);
});

test('the reference of an IPAddress cannot be changed, and tables show it', (t) => {
  const { object } = create(IPAddress, address('10.0.0.1'));
  const { causes } = update(IPAddress, object, ({ spec }) => {
    spec.parentRef.name = 'other';
  });
  t.deepEqual(causes, ['spec.parentRef Invalid']);
  t.is(row(IPAddress, object)['ParentRef'], 'services/default/web');
  const other = create(IPAddress, address('10.0.0.2', { group: 'example.com', resource: 'gateways', name: 'g' }));
  t.is(row(IPAddress, other.object)['ParentRef'], 'gateways.example.com/g');
});

test('a ServiceCIDR has one network, or one of each family, in canonical form', (t) => {
  for (const cidrs of [['10.0.0.0/24'], ['fd00::/64', '10.0.0.0/8']])
    t.deepEqual(create(ServiceCIDR, networks(...cidrs)).messages, []);
  const at0 = (value: string, detail: string) => `spec.cidrs[0]: Invalid value: "${value}": ${detail}`;
  const cases: [readonly string[], string][] = [
    [[], 'spec.cidrs: Required value: at least one CIDR required'],
    [['10.0.0.0'], at0('10.0.0.0', 'must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)')],
    [['10.0.0.00/24'], at0('10.0.0.00/24', 'must not have leading 0s in IP or prefix length')],
    [['10.0.0.0/08'], at0('10.0.0.0/08', 'must not have leading 0s in IP or prefix length')],
    [['::ffff:10.0.0.0/120'], at0('::ffff:10.0.0.0/120', 'must not have an IPv4-mapped IPv6 address')],
    [['10.0.0.1/24'], at0('10.0.0.1/24', 'must not have bits set beyond the prefix length')],
    [['FD00::/64'], at0('FD00::/64', 'must be in canonical form ("fd00::/64")')],
    [
      ['10.0.0.0/24', '10.1.0.0/24'],
      'spec.cidrs: Invalid value: ["10.0.0.0/24","10.1.0.0/24"]: may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64',
    ],
    [
      ['10.0.0.0/24', 'fd00::/64', '10.1.0.0/24'],
      'spec.cidrs: Invalid value: ["10.0.0.0/24","fd00::/64","10.1.0.0/24"]: may only hold up to 2 values',
    ],
  ];
  for (const [cidrs, expected] of cases) t.deepEqual(create(ServiceCIDR, networks(...cidrs)).messages, [expected]);
});

test('the networks of a ServiceCIDR cannot be changed, but one of the other family can be added', (t) => {
  const changed = (from: readonly string[], ...to: string[]) =>
    update(ServiceCIDR, create(ServiceCIDR, networks(...from)).object, ({ spec }) => {
      spec.cidrs = to;
    }).causes;
  t.deepEqual(changed(['10.0.0.0/24'], '10.0.0.0/24', 'fd00::/64'), []);
  t.deepEqual(changed(['10.0.0.0/24'], '10.0.0.0/16'), ['spec.cidrs[0] Invalid']);
  t.deepEqual(changed(['10.0.0.0/24'], '10.0.0.0/16', 'fd00::/64'), ['spec.cidrs[0] Invalid']);
  t.deepEqual(changed(['10.0.0.0/24', 'fd00::/64'], '10.0.0.0/24'), ['spec.cidrs Invalid']);
  t.is(
    row(ServiceCIDR, create(ServiceCIDR, networks('10.0.0.0/24', 'fd00::/64')).object)['CIDRs'],
    '10.0.0.0/24,fd00::/64',
  );
});
