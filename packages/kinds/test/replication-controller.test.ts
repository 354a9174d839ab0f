import test from 'ava';
import { PodTemplate, ReplicationController } from '../src/index.ts';
import { container } from './helpers/manifests.ts';
import { create, row, updateStatus } from './helpers/writes.ts';

const labels = { app: 'web' };
const template = { metadata: { labels }, spec: { containers: [container] } };
const controller = (spec: Record<string, unknown> = {}) => ({
  apiVersion: 'v1',
  kind: 'ReplicationController',
  metadata: { name: 'web', namespace: 'default' },
  spec: { template, ...spec },
});

test('defaults, scale and row of a ReplicationController', (t) => {
  const { object, messages } = create(ReplicationController, controller({ replicas: 0 }));
  t.deepEqual(messages, []);
  t.is(object.spec.replicas, 0);
  t.is(create(ReplicationController, controller()).object.spec.replicas, 1);
  t.deepEqual(object.spec.selector, labels);
  t.deepEqual(object.metadata?.labels, labels);
  t.is(object.spec.template?.spec.restartPolicy, 'Always');
  object.status = { replicas: 3, readyReplicas: 2 };
  const cells = { Desired: 0, Current: 3, Ready: 2, Containers: 'app', Images: 'nginx:1.25', Selector: 'app=web' };
  t.deepEqual(row(ReplicationController, object), { Name: 'web', ...cells, Age: '<unknown>' });
  t.is(ReplicationController.selectableFields.get('status.replicas')?.(object), '3');
  const scale = ReplicationController.subresources.find(({ name }) => name === 'scale');
  t.is(scale?.type, 'projection');
  if (scale?.type !== 'projection') return;
  t.like(scale.read(object), { spec: { replicas: 0 }, status: { replicas: 3, selector: 'app=web' } });
  scale.write(object, { spec: { replicas: 4 } });
  t.is(object.spec.replicas, 4);
});

for (const [title, spec, messages] of [
  ['no template', { template: undefined, selector: labels }, ['spec.template: Required value']],
  ['no labels', { template: { spec: template.spec } }, ['spec.selector: Required value']],
  [
    'a selector that does not match',
    { selector: { app: 'db' } },
    ['spec.template.metadata.labels: Invalid value: {"app":"web"}: `selector` does not match template `labels`'],
  ],
  [
    'a template of jobs',
    { template: { ...template, spec: { ...template.spec, restartPolicy: 'Never', activeDeadlineSeconds: 1 } } },
    [
      'spec.template.spec.restartPolicy: Unsupported value: "Never": supported values: "Always"',
      'spec.template.spec.activeDeadlineSeconds: Forbidden: activeDeadlineSeconds in ReplicationController is not Supported',
    ],
  ],
  [
    'negative numbers',
    { replicas: -1, minReadySeconds: -1 },
    [
      'spec.minReadySeconds: Invalid value: -1: must be greater than or equal to 0',
      'spec.replicas: Invalid value: -1: must be greater than or equal to 0',
    ],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`ReplicationController with ${title}`, (t) => {
    t.deepEqual(create(ReplicationController, controller(spec)).messages, messages);
  });
}

test('the status of a ReplicationController must be consistent', (t) => {
  const old = create(ReplicationController, controller()).object;
  const { messages } = updateStatus(ReplicationController, old, (object) => {
    object.status = { replicas: 2, readyReplicas: 1, availableReplicas: 2 };
  });
  t.deepEqual(messages, ['status.availableReplicas: Invalid value: 2: cannot be greater than readyReplicas']);
});

test('a PodTemplate is validated and has a table row', (t) => {
  const manifest = { apiVersion: 'v1', kind: 'PodTemplate', metadata: { name: 'web' }, template };
  const { object, messages } = create(PodTemplate, manifest);
  t.deepEqual(messages, []);
  t.deepEqual(row(PodTemplate, object), {
    Name: 'web',
    Containers: 'app',
    Images: 'nginx:1.25',
    'Pod Labels': 'app=web',
  });
  const empty = create(PodTemplate, { ...manifest, template: { spec: { containers: [] } } });
  t.deepEqual(empty.messages, ['template.spec.containers: Required value']);
});
