import { always, type Infer, optional, type Schema, s } from '@keelson/core';

const resourceRule = s.message('k8s.io.api.authorization.v1.ResourceRule', 'What may be done with some resources.', {
  verbs: always(1, s.list(s.string(), { listType: 'atomic' }), 'The verbs; `*` stands for all.'),
  apiGroups: optional(2, s.list(s.string(), { listType: 'atomic' }), 'The groups; `*` stands for all.'),
  resources: optional(
    3,
    s.list(s.string(), { listType: 'atomic' }),
    'The resources; `*` stands for all, `*/sub` for one subresource of all.',
  ),
  resourceNames: optional(4, s.list(s.string(), { listType: 'atomic' }), 'The names; empty means all names.'),
});
export interface ResourceRule extends Infer<typeof resourceRule> {}
export const ResourceRuleSchema: Schema<ResourceRule> = resourceRule;

const nonResourceRule = s.message('k8s.io.api.authorization.v1.NonResourceRule', 'What may be done with some paths.', {
  verbs: always(1, s.list(s.string(), { listType: 'atomic' }), 'The verbs; `*` stands for all.'),
  nonResourceURLs: optional(
    2,
    s.list(s.string(), { listType: 'atomic' }),
    'The paths; `*` at the end stands for anything that follows.',
  ),
});
export interface NonResourceRule extends Infer<typeof nonResourceRule> {}
export const NonResourceRuleSchema: Schema<NonResourceRule> = nonResourceRule;

const subjectRulesReviewStatus = s.message(
  'k8s.io.api.authorization.v1.SubjectRulesReviewStatus',
  'What a user may do.',
  {
    resourceRules: always(1, s.list(ResourceRuleSchema, { listType: 'atomic' }), 'Rules about resources.'),
    nonResourceRules: always(2, s.list(NonResourceRuleSchema, { listType: 'atomic' }), 'Rules about paths.'),
    incomplete: always(3, s.bool(), 'True when the list of rules is incomplete.'),
    evaluationError: optional(4, s.string(), 'Why the rules are incomplete.'),
  },
);
export interface SubjectRulesReviewStatus extends Infer<typeof subjectRulesReviewStatus> {}
export const SubjectRulesReviewStatusSchema: Schema<SubjectRulesReviewStatus> = subjectRulesReviewStatus;

const selfSubjectRulesReviewSpec = s.message(
  'k8s.io.api.authorization.v1.SelfSubjectRulesReviewSpec',
  'The namespace of the rules.',
  { namespace: optional(1, s.string(), 'The namespace; it must be given.') },
);
export interface SelfSubjectRulesReviewSpec extends Infer<typeof selfSubjectRulesReviewSpec> {}
export const SelfSubjectRulesReviewSpecSchema: Schema<SelfSubjectRulesReviewSpec> = selfSubjectRulesReviewSpec;
