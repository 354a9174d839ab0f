import test from 'ava';
import { ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding } from '../src/index.ts';
import { create, row } from './helpers/writes.ts';

const rule = { operations: ['CREATE'], apiGroups: ['apps'], apiVersions: ['v1'], resources: ['deployments'] };
const policy = (spec: Record<string, unknown> = {}) => ({
  metadata: { name: 'limit.example.com' },
  spec: {
    matchConstraints: { resourceRules: [rule] },
    validations: [{ expression: 'object.spec.replicas <= 5' }],
    ...spec,
  },
});
const binding = (spec: Record<string, unknown> = {}) => ({
  metadata: { name: 'limit' },
  spec: { policyName: 'limit.example.com', validationActions: ['Deny'], ...spec },
});

const exclusive = 'name and selector are mutually exclusive';
const twice = 'repeating the same validation failure information in the API response and headers serves no purpose';

const policies: readonly (readonly [title: string, spec: Record<string, unknown>, messages: readonly string[]])[] = [
  ['a complete policy', {}, []],
  ['no constraints', { matchConstraints: undefined }, ['spec.matchConstraints: Required value']],
  ['no rules', { matchConstraints: {} }, ['spec.matchConstraints.resourceRules: Required value']],
  [
    'a name that occurs twice',
    { matchConstraints: { resourceRules: [{ ...rule, resourceNames: ['a', 'a', 'b/c'] }] } },
    [
      'spec.matchConstraints.resourceRules[0].resourceNames[1]: Duplicate value: "a"',
      'spec.matchConstraints.resourceRules[0].resourceNames[2]: Invalid value: "b/c": may not contain \'/\'',
    ],
  ],
  [
    'nothing to evaluate',
    { validations: [] },
    [
      'spec.validations: Required value: validations or auditAnnotations must contain at least one item',
      'spec.auditAnnotations: Required value: validations or auditAnnotations must contain at least one item',
    ],
  ],
  [
    'an unknown failure policy',
    { failurePolicy: 'Maybe' },
    ['spec.failurePolicy: Unsupported value: "Maybe": supported values: "Fail", "Ignore"'],
  ],
  [
    'incomplete rules',
    { validations: [{ expression: ' ', message: '\n', reason: 'Odd', messageExpression: ' ' }] },
    [
      'spec.validations[0].expression: Required value: expression is not specified',
      'spec.validations[0].messageExpression: Invalid value: " ": must be non-empty if specified',
      'spec.validations[0].message: Invalid value: "\\n": must be non-empty if specified',
      'spec.validations[0].reason: Unsupported value: "Odd": supported values: "Forbidden", "Invalid", ' +
        '"RequestEntityTooLarge"',
    ],
  ],
  [
    'a message of two lines',
    { validations: [{ expression: 'true', message: 'a\nb' }] },
    ['spec.validations[0].message: Invalid value: "a\\nb": must not contain line breaks'],
  ],
  [
    'variables without a usable name',
    {
      variables: [
        { name: '', expression: '1' },
        { name: 'a-b', expression: '1' },
        { name: 'in', expression: '' },
      ],
    },
    [
      'spec.variables[0].name: Required value: name is not specified',
      'spec.variables[1].name: Invalid value: "a-b": must be a valid CEL identifier',
      'spec.variables[2].name: Invalid value: "in": must be a valid CEL identifier',
      'spec.variables[2].expression: Required value: expression is not specified',
    ],
  ],
  [
    'parameters of no kind',
    { paramKind: { apiVersion: 'a/b/c', kind: '' } },
    [
      'spec.paramKind.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c',
      'spec.paramKind.kind: Required value',
    ],
  ],
  [
    'annotations',
    {
      auditAnnotations: [
        { key: 'a', valueExpression: "'x'" },
        { key: 'a', valueExpression: '' },
      ],
    },
    [
      'spec.auditAnnotations[1].valueExpression: Required value: valueExpression is not specified',
      'spec.auditAnnotations[1].key: Duplicate value: "a"',
    ],
  ],
];
for (const [title, spec, messages] of policies) {
  test(`policies are validated: ${title}`, (t) => {
    t.deepEqual(create(ValidatingAdmissionPolicy, policy(spec)).messages, messages);
  });
}

const bindings: readonly (readonly [title: string, spec: Record<string, unknown>, messages: readonly string[]])[] = [
  ['a complete binding', {}, []],
  ['no policy', { policyName: '' }, ['spec.policyName: Required value']],
  [
    'no action',
    { validationActions: [] },
    ['spec.validationActions: Required value: at least one validation action is required'],
  ],
  [
    'actions that repeat each other',
    { validationActions: ['Deny', 'Warn', 'Log'] },
    [
      'spec.validationActions[2]: Unsupported value: "Log": supported values: "Audit", "Deny", "Warn"',
      `spec.validationActions: Invalid value: ["Deny","Warn","Log"]: must not contain both Deny and Warn (${twice})`,
    ],
  ],
  [
    'a name and a selector',
    { paramRef: { name: 'a', selector: {}, parameterNotFoundAction: 'Deny' } },
    [`spec.paramRef.name: Forbidden: ${exclusive}`, `spec.paramRef.selector: Forbidden: ${exclusive}`],
  ],
  [
    'neither name nor selector nor action',
    { paramRef: {} },
    [
      'spec.paramRef: Required value: one of name or selector must be specified',
      'spec.paramRef.parameterNotFoundAction: Required value',
    ],
  ],
];
for (const [title, spec, messages] of bindings) {
  test(`bindings are validated: ${title}`, (t) => {
    t.deepEqual(create(ValidatingAdmissionPolicyBinding, binding(spec)).messages, messages);
  });
}

test('policies and bindings have the defaults of Kubernetes', (t) => {
  const { object } = create(ValidatingAdmissionPolicy, policy());
  t.like(object.spec, {
    failurePolicy: 'Fail',
    matchConstraints: {
      matchPolicy: 'Equivalent',
      namespaceSelector: {},
      objectSelector: {},
      resourceRules: [{ ...rule, scope: '*' }],
    },
  });
  const bound = create(ValidatingAdmissionPolicyBinding, binding({ matchResources: {} }));
  t.like(bound.object.spec?.matchResources, { matchPolicy: 'Equivalent', namespaceSelector: {}, objectSelector: {} });
});

test('kubectl shows rules and parameters', (t) => {
  const kind = { apiVersion: 'v1', kind: 'ConfigMap' };
  t.is(row(ValidatingAdmissionPolicy, policy({ paramKind: kind }))['ParamKind'], 'v1/ConfigMap');
  t.like(row(ValidatingAdmissionPolicy, policy()), { Validations: 1, ParamKind: '<unset>' });
  const shown = (paramRef?: Record<string, unknown>) =>
    row(ValidatingAdmissionPolicyBinding, binding({ paramRef }))['ParamRef'];
  t.is(shown(), '<unset>');
  t.is(shown({ name: 'a' }), '*/a');
  t.is(shown({ name: 'a', namespace: 'b' }), 'b/a');
});
