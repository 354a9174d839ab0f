import test from 'ava';
import { PodDisruptionBudget } from '../src/index.ts';
import { create, row, updateStatus } from './helpers/writes.ts';

const budget = (spec: Record<string, unknown> = {}) => ({
  apiVersion: 'policy/v1',
  kind: 'PodDisruptionBudget',
  metadata: { name: 'web', namespace: 'default' },
  spec: { selector: { matchLabels: { app: 'web' } }, ...spec },
});
const percent =
  "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or '93%', regex used for " +
  "validation is '[0-9]+%')";

for (const [title, spec, messages] of [
  ['no limit', {}, []],
  ['a number', { minAvailable: 1 }, []],
  ['a percentage', { maxUnavailable: '30%', unhealthyPodEvictionPolicy: 'AlwaysAllow' }, []],
  [
    'both limits',
    { minAvailable: 1, maxUnavailable: 1 },
    [
      'spec: Invalid value: {"minAvailable":1,"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":1}: ' +
        'minAvailable and maxUnavailable cannot be both set',
    ],
  ],
  [
    'limits out of range',
    { minAvailable: -1, maxUnavailable: '101%' },
    [
      'spec: Invalid value: {"minAvailable":-1,"selector":{"matchLabels":{"app":"web"}},"maxUnavailable":"101%"}: ' +
        'minAvailable and maxUnavailable cannot be both set',
      'spec.minAvailable: Invalid value: -1: must be greater than or equal to 0',
      'spec.maxUnavailable: Invalid value: "101%": must not be greater than 100%',
    ],
  ],
  ['a word', { minAvailable: 'all' }, [`spec.minAvailable: Invalid value: "all": ${percent}`]],
  [
    'an unknown policy',
    { unhealthyPodEvictionPolicy: 'Never' },
    [
      'spec.unhealthyPodEvictionPolicy: Unsupported value: "Never": ' +
        'supported values: "AlwaysAllow", "IfHealthyBudget"',
    ],
  ],
  [
    'an invalid selector',
    { selector: { matchExpressions: [{ key: 'app', operator: 'In' }] } },
    ["spec.selector.matchExpressions[0].values: Required value: must be specified when `operator` is 'In' or 'NotIn'"],
  ],
] as readonly [string, Record<string, unknown>, readonly string[]][]) {
  test(`PodDisruptionBudget with ${title}`, (t) => {
    t.deepEqual(create(PodDisruptionBudget, budget(spec)).messages, messages);
  });
}

test('the status of a PodDisruptionBudget has counts and conditions in the shared form', (t) => {
  const old = create(PodDisruptionBudget, budget({ minAvailable: 1 })).object;
  const condition = { type: 'DisruptionAllowed', lastTransitionTime: '2026-01-01T00:00:00Z', message: '' };
  const { messages } = updateStatus(PodDisruptionBudget, old, (object) => {
    object.status = {
      disruptionsAllowed: -1,
      currentHealthy: 1,
      desiredHealthy: 1,
      expectedPods: 1,
      conditions: [
        { ...condition, status: 'Maybe', reason: '', observedGeneration: -1 },
        { ...condition, status: 'True', reason: '1st' },
      ],
    };
  });
  t.deepEqual(messages, [
    'status.conditions[0].status: Unsupported value: "Maybe": supported values: "False", "True", "Unknown"',
    'status.conditions[0].observedGeneration: Invalid value: -1: must be greater than or equal to zero',
    'status.conditions[0].reason: Required value',
    'status.conditions[1].type: Duplicate value: "DisruptionAllowed"',
    'status.conditions[1].reason: Invalid value: "1st": a condition reason must start with alphabetic character, ' +
      "optionally followed by a string of alphanumeric characters or '_,:', and must end with an alphanumeric " +
      "character or '_' (e.g. 'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', " +
      "regex used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')",
    'status.disruptionsAllowed: Invalid value: -1: must be greater than or equal to 0',
  ]);
});

test('the table row of a PodDisruptionBudget', (t) => {
  const { object } = create(PodDisruptionBudget, budget({ maxUnavailable: '30%' }));
  object.status = { disruptionsAllowed: 2, currentHealthy: 3, desiredHealthy: 1, expectedPods: 3 };
  t.deepEqual(row(PodDisruptionBudget, object), {
    Name: 'web',
    'Min Available': 'N/A',
    'Max Unavailable': '30%',
    'Allowed Disruptions': 2,
    Age: '<unknown>',
  });
});
