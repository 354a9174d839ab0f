import { always, type Infer, inline, labelSelectorSchema, optional, type Schema, s } from '@keelson/core';

const v1 = 'k8s.io.api.admissionregistration.v1';
const texts = s.list(s.string(), { listType: 'atomic' });

const rule = s.message(`${v1}.Rule`, 'Selects resources. Each list may be ["*"].', {
  apiGroups: optional(1, texts, 'API groups; "" is the core group.'),
  apiVersions: optional(2, texts, 'Versions of the groups.'),
  resources: optional(3, texts, 'Resources and subresources: pods, pods/log, */scale, */*.'),
  scope: optional(4, s.string(), 'Cluster, Namespaced or *, the default.', { presence: true }),
});
export interface Rule extends Infer<typeof rule> {}
export const RuleSchema: Schema<Rule> = rule;

const ruleWithOperations = s.message(`${v1}.RuleWithOperations`, 'Selects operations on resources.', {
  operations: optional(
    1,
    s.list(s.string({ values: ['*', 'CONNECT', 'CREATE', 'DELETE', 'UPDATE'] }), { listType: 'atomic' }),
    'CREATE, UPDATE, DELETE, CONNECT or *.',
  ),
  rule: inline(2, RuleSchema),
});
export interface RuleWithOperations extends Infer<typeof ruleWithOperations> {}
export const RuleWithOperationsSchema: Schema<RuleWithOperations> = ruleWithOperations;

const matchCondition = s.message(`${v1}.MatchCondition`, 'A condition on a request.', {
  name: always(1, s.string(), 'Name of the condition, unique in its list.'),
  expression: always(2, s.string(), 'CEL expression that is true for requests that match.'),
});
export interface MatchCondition extends Infer<typeof matchCondition> {}
export const MatchConditionSchema: Schema<MatchCondition> = matchCondition;

/**
 * Fields by which webhooks and policies select requests besides rules. Their Protobuf field numbers are arguments,
 * because they differ.
 */
export const selectionFields = (numbers: { namespaceSelector: number; objectSelector: number; matchPolicy: number }) =>
  ({
    namespaceSelector: optional(numbers.namespaceSelector, labelSelectorSchema, 'Namespaces of the selected objects.'),
    objectSelector: optional(numbers.objectSelector, labelSelectorSchema, 'Labels of the selected objects.'),
    matchPolicy: optional(
      numbers.matchPolicy,
      s.string({ values: ['Equivalent', 'Exact'] }),
      'Exact or Equivalent: whether rules match other versions of a resource.',
      { presence: true },
    ),
  }) as const;

/** The field `failurePolicy`, which webhooks and policies share. */
export const failurePolicyField = optional(
  4,
  s.string({ values: ['Fail', 'Ignore'] }),
  'Fail or Ignore: what a failed examination means.',
  {
    presence: true,
  },
);

export const matchConditionsField = (number: number) =>
  optional(
    number,
    s.listByKey(MatchConditionSchema, 'name'),
    'Conditions that requests must meet, besides rules and selectors.',
  );
