import test from 'ava';
import { Pod, PodDisruptionBudget, PodTemplate } from '../src/index.ts';
import { container, podManifest } from './helpers/manifests.ts';
import { create, update } from './helpers/writes.ts';

/** The errors of new pods, as clients read them. */
const messagesOf = (spec: Record<string, unknown>, metadata: Record<string, unknown> = {}) =>
  create(Pod, podManifest(spec, metadata)).messages;

test('values that older releases of Kubernetes accepted are still accepted', (t) => {
  const spread = { maxSkew: 1, topologyKey: 'no label key', whenUnsatisfiable: 'DoNotSchedule', labelSelector: {} };
  const accepted = {
    imagePullSecrets: [{}, { name: '' }, { name: 'a' }],
    dnsConfig: { nameservers: ['010.001.0.1', '::ffff:1.2.3.04'], searches: ['_a.b', '.', 'a_b.c.'] },
    hostAliases: [{ ip: '001.2.3.4', hostnames: ['a'] }],
    volumes: [{ name: 'v', projected: { sources: [{}] } }],
    topologySpreadConstraints: [spread],
  };
  t.deepEqual(messagesOf(accepted), []);
  t.deepEqual(messagesOf({ dnsConfig: { nameservers: ['1.2.3', 'fe80::1%eth0', '1.2.3.0256'] } }), [
    ...['"1.2.3"', '"fe80::1%eth0"', '"1.2.3.0256"'].map(
      (value, i) =>
        `spec.dnsConfig.nameservers[${i}]: Invalid value: ${value}: must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)`,
    ),
  ]);
  t.deepEqual(messagesOf({ dnsConfig: { searches: ['a..b', '-a'] } }).length, 2);
  t.deepEqual(messagesOf({ topologySpreadConstraints: [{ ...spread, topologyKey: '' }] }), [
    'spec.topologySpreadConstraints[0].topologyKey: Required value: can not be empty',
  ]);
  const budget = { apiVersion: 'policy/v1', kind: 'PodDisruptionBudget', metadata: { name: 'A_' }, spec: {} };
  t.deepEqual(create(PodDisruptionBudget, budget).messages, []);
  t.is(PodDisruptionBudget.strategy.nameRule, 'pathSegment');
});

test('a negative grace period is 1 in a pod, and remains in a template', (t) => {
  const spec = { containers: [container], terminationGracePeriodSeconds: -5 };
  const { object, messages } = create(Pod, podManifest(spec));
  t.deepEqual(messages, []);
  t.is(object.spec.terminationGracePeriodSeconds, 1);
  const old = { ...object, spec: { ...object.spec, terminationGracePeriodSeconds: -5 } };
  t.deepEqual(update(Pod, old, () => {}).messages, []);
  const template = create(PodTemplate, {
    apiVersion: 'v1',
    kind: 'PodTemplate',
    metadata: { name: 't' },
    template: { spec },
  });
  t.deepEqual(template.messages, []);
  t.is(template.object.template?.spec?.terminationGracePeriodSeconds, -5);
});

test('sources of projected volumes have messages of Kubernetes', (t) => {
  const projected = (...sources: object[]) => messagesOf({ volumes: [{ name: 'v', projected: { sources } }] });
  const items = [{ key: 'k', path: 'p' }];
  t.deepEqual(projected({ secret: { name: 's', items }, configMap: { name: 'c', items } }), [
    'spec.volumes[0].projected: Invalid value: "c": conflicting duplicate paths',
    'spec.volumes[0].projected.sources[0]: Forbidden: may not specify more than 1 volume type per source',
  ]);
  t.deepEqual(projected({ serviceAccountToken: { path: '../t' } }), [
    'spec.volumes[0].projected.path: Invalid value: "../t": must not contain \'..\'',
  ]);
});
