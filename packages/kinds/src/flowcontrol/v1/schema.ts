import { always, embedded, filled, type Infer, type KubeObject, optional, type Schema, s } from '@keelson/core';

const userSubject = s.message('k8s.io.api.flowcontrol.v1.UserSubject', 'One user, by name.', {
  name: always(1, s.string(), 'Name of the user; * stands for every user.'),
});
export interface UserSubject extends Infer<typeof userSubject> {}
export const UserSubjectSchema: Schema<UserSubject> = userSubject;

const groupSubject = s.message('k8s.io.api.flowcontrol.v1.GroupSubject', 'The users of a group.', {
  name: always(1, s.string(), 'Name of the group; * stands for every group.'),
});
export interface GroupSubject extends Infer<typeof groupSubject> {}
export const GroupSubjectSchema: Schema<GroupSubject> = groupSubject;

const serviceAccountSubject = s.message('k8s.io.api.flowcontrol.v1.ServiceAccountSubject', 'A service account.', {
  namespace: always(1, s.string(), 'Namespace of the service account.'),
  name: always(2, s.string(), 'Name of the service account; * stands for all of the namespace.'),
});
export interface ServiceAccountSubject extends Infer<typeof serviceAccountSubject> {}
export const ServiceAccountSubjectSchema: Schema<ServiceAccountSubject> = serviceAccountSubject;

const subject = s.message('k8s.io.api.flowcontrol.v1.Subject', 'Whose requests a rule matches.', {
  kind: always(1, s.string(), 'User, Group or ServiceAccount; the field of that kind must be set.'),
  user: optional(2, UserSubjectSchema, 'The user.'),
  group: optional(3, GroupSubjectSchema, 'The group.'),
  serviceAccount: optional(4, ServiceAccountSubjectSchema, 'The service account.'),
});
export interface Subject extends Infer<typeof subject> {}
export const SubjectSchema: Schema<Subject> = subject;

const names = s.list(s.string(), { listType: 'set' });

const resourceRule = s.message(
  'k8s.io.api.flowcontrol.v1.ResourcePolicyRule',
  'Requests for resources. A request matches when it matches every field.',
  {
    verbs: always(1, names, 'Verbs, or only *.'),
    apiGroups: always(2, names, 'API groups, or only *.'),
    resources: always(3, names, 'Resources, with subresource where that is meant: services, nodes/status; or only *.'),
    clusterScope: optional(4, s.bool(), 'Whether requests without a namespace match.'),
    namespaces: embedded(5, names, 'Namespaces of the requests that match, or only *.'),
  },
);
export interface ResourcePolicyRule extends Infer<typeof resourceRule> {}
export const ResourcePolicyRuleSchema: Schema<ResourcePolicyRule> = resourceRule;

const nonResourceRule = s.message(
  'k8s.io.api.flowcontrol.v1.NonResourcePolicyRule',
  'Requests for paths outside of the resource API. A request matches when it matches every field.',
  {
    verbs: always(1, names, 'Verbs, or only *.'),
    nonResourceURLs: always(6, names, 'Paths such as /healthz or /healthz/*, or only *.'),
  },
);
export interface NonResourcePolicyRule extends Infer<typeof nonResourceRule> {}
export const NonResourcePolicyRuleSchema: Schema<NonResourcePolicyRule> = nonResourceRule;

const policyRules = s.message(
  'k8s.io.api.flowcontrol.v1.PolicyRulesWithSubjects',
  'A request matches when it matches a subject and one of the rules.',
  {
    subjects: always(1, s.list(SubjectSchema, { listType: 'atomic' }), 'Whose requests match; at least one.'),
    resourceRules: optional(
      2,
      s.list(ResourcePolicyRuleSchema, { listType: 'atomic' }),
      'Which requests for resources match.',
    ),
    nonResourceRules: optional(
      3,
      s.list(NonResourcePolicyRuleSchema, { listType: 'atomic' }),
      'Which requests for other paths match.',
    ),
  },
);
export interface PolicyRulesWithSubjects extends Infer<typeof policyRules> {}
export const PolicyRulesWithSubjectsSchema: Schema<PolicyRulesWithSubjects> = policyRules;

const distinguisher = s.message(
  'k8s.io.api.flowcontrol.v1.FlowDistinguisherMethod',
  'What divides requests into flows.',
  {
    type: always(1, s.string(), 'ByUser or ByNamespace.'),
  },
);
export interface FlowDistinguisherMethod extends Infer<typeof distinguisher> {}
export const FlowDistinguisherMethodSchema: Schema<FlowDistinguisherMethod> = distinguisher;

const levelReference = s.message(
  'k8s.io.api.flowcontrol.v1.PriorityLevelConfigurationReference',
  'Names a priority level.',
  { name: always(1, s.string(), 'Name of the PriorityLevelConfiguration.') },
);
export interface PriorityLevelConfigurationReference extends Infer<typeof levelReference> {}
export const PriorityLevelConfigurationReferenceSchema: Schema<PriorityLevelConfigurationReference> = levelReference;

const flowSchemaSpec = s.message('k8s.io.api.flowcontrol.v1.FlowSchemaSpec', 'Which requests belong to a level.', {
  priorityLevelConfiguration: always(
    1,
    PriorityLevelConfigurationReferenceSchema,
    'The level of matching requests. A schema that names a missing level is ignored.',
  ),
  matchingPrecedence: embedded(
    2,
    s.int32(),
    'Order of the schemas, 1 to 10000: the matching one with the lowest number counts, then the first by name. ' +
      '1000 by default.',
  ),
  distinguisherMethod: optional(3, FlowDistinguisherMethodSchema, 'Without it all matching requests are one flow.'),
  rules: optional(
    4,
    s.list(PolicyRulesWithSubjectsSchema, { listType: 'atomic' }),
    'A request matches when it matches one of them.',
  ),
});
export interface FlowSchemaSpec extends Infer<typeof flowSchemaSpec> {}
export const FlowSchemaSpecSchema: Schema<FlowSchemaSpec> = flowSchemaSpec;

const conditionFields = {
  type: optional(1, s.string(), 'Type of the condition; Dangling for a flow schema.'),
  status: optional(2, s.string(), 'True, False or Unknown.'),
  lastTransitionTime: optional(3, s.time(), 'When the status last changed.'),
  reason: optional(4, s.string(), 'One CamelCase word for why.'),
  message: optional(5, s.string(), 'Human-readable message.'),
};
const flowSchemaCondition = s.message(
  'k8s.io.api.flowcontrol.v1.FlowSchemaCondition',
  'An observation about a flow schema.',
  conditionFields,
);
export interface FlowSchemaCondition extends Infer<typeof flowSchemaCondition> {}
export const FlowSchemaConditionSchema: Schema<FlowSchemaCondition> = flowSchemaCondition;

const flowSchemaStatus = s.message('k8s.io.api.flowcontrol.v1.FlowSchemaStatus', 'State of a flow schema.', {
  conditions: optional(1, s.listByKey(FlowSchemaConditionSchema, 'type'), 'Latest observations.'),
});
export interface FlowSchemaStatus extends Infer<typeof flowSchemaStatus> {}
export const FlowSchemaStatusSchema: Schema<FlowSchemaStatus> = flowSchemaStatus;

const flowSchema = s.message('k8s.io.api.flowcontrol.v1.FlowSchema', 'Assigns requests to a priority level.', {
  spec: embedded(2, FlowSchemaSpecSchema, 'Which requests belong to which level.'),
  status: filled(3, FlowSchemaStatusSchema, 'State that the server observes.'),
});
export interface FlowSchema extends KubeObject, Infer<typeof flowSchema> {}
export const FlowSchemaSchema: Schema<FlowSchema> = flowSchema;

const queuing = s.message('k8s.io.api.flowcontrol.v1.QueuingConfiguration', 'How requests of a level wait.', {
  queues: embedded(1, s.int32(), 'With queueLengthLimit it limits the waiting requests of the level; 64 by default.'),
  handSize: embedded(
    2,
    s.int32(),
    'Queues among which Kubernetes chooses for a flow; here every flow has a queue of its own. 8 by default.',
  ),
  queueLengthLimit: embedded(3, s.int32(), 'Maximum number of waiting requests of a flow; 50 by default.'),
});
export interface QueuingConfiguration extends Infer<typeof queuing> {}
export const QueuingConfigurationSchema: Schema<QueuingConfiguration> = queuing;

const limitResponse = s.message(
  'k8s.io.api.flowcontrol.v1.LimitResponse',
  'What happens to requests that cannot run immediately.',
  {
    type: always(1, s.string(), 'Queue makes them wait, Reject answers them with 429.'),
    queuing: optional(2, QueuingConfigurationSchema, 'Limits for the type Queue.'),
  },
);
export interface LimitResponse extends Infer<typeof limitResponse> {}
export const LimitResponseSchema: Schema<LimitResponse> = limitResponse;

const limited = s.message(
  'k8s.io.api.flowcontrol.v1.LimitedPriorityLevelConfiguration',
  'Limits of a priority level.',
  {
    nominalConcurrencyShares: optional(
      1,
      s.int32(),
      'Share of the seats of the server, in proportion to the sum of all levels; 30 by default.',
      { presence: true },
    ),
    limitResponse: embedded(2, LimitResponseSchema, 'What happens to requests beyond the limit.'),
    lendablePercent: optional(3, s.int32(), 'Percentage of its seats that other levels may use; 0 by default.', {
      presence: true,
    }),
    borrowingLimitPercent: optional(
      4,
      s.int32(),
      'Maximum number of seats of other levels, as a percentage of its own; without it there is no limit.',
      { presence: true },
    ),
  },
);
export interface LimitedPriorityLevelConfiguration extends Infer<typeof limited> {}
export const LimitedPriorityLevelConfigurationSchema: Schema<LimitedPriorityLevelConfiguration> = limited;

const exempt = s.message(
  'k8s.io.api.flowcontrol.v1.ExemptPriorityLevelConfiguration',
  'Seats that are kept for requests without a limit.',
  {
    nominalConcurrencyShares: optional(1, s.int32(), 'Share of the seats of the server; 0 by default.', {
      presence: true,
    }),
    lendablePercent: optional(2, s.int32(), 'Percentage of these seats that other levels may use; 0 by default.', {
      presence: true,
    }),
  },
);
export interface ExemptPriorityLevelConfiguration extends Infer<typeof exempt> {}
export const ExemptPriorityLevelConfigurationSchema: Schema<ExemptPriorityLevelConfiguration> = exempt;

const levelSpec = s.message(
  'k8s.io.api.flowcontrol.v1.PriorityLevelConfigurationSpec',
  'Limits of the requests of a priority level.',
  {
    type: always(1, s.string(), 'Limited; Exempt for the level exempt only, whose requests are not limited.'),
    limited: optional(2, LimitedPriorityLevelConfigurationSchema, 'Limits for the type Limited.'),
    exempt: optional(3, ExemptPriorityLevelConfigurationSchema, 'Settings for the type Exempt.'),
  },
);
export interface PriorityLevelConfigurationSpec extends Infer<typeof levelSpec> {}
export const PriorityLevelConfigurationSpecSchema: Schema<PriorityLevelConfigurationSpec> = levelSpec;

const levelCondition = s.message(
  'k8s.io.api.flowcontrol.v1.PriorityLevelConfigurationCondition',
  'An observation about a priority level.',
  conditionFields,
);
export interface PriorityLevelConfigurationCondition extends Infer<typeof levelCondition> {}
export const PriorityLevelConfigurationConditionSchema: Schema<PriorityLevelConfigurationCondition> = levelCondition;

const levelStatus = s.message(
  'k8s.io.api.flowcontrol.v1.PriorityLevelConfigurationStatus',
  'State of a priority level.',
  { conditions: optional(1, s.listByKey(PriorityLevelConfigurationConditionSchema, 'type'), 'Latest observations.') },
);
export interface PriorityLevelConfigurationStatus extends Infer<typeof levelStatus> {}
export const PriorityLevelConfigurationStatusSchema: Schema<PriorityLevelConfigurationStatus> = levelStatus;

const level = s.message(
  'k8s.io.api.flowcontrol.v1.PriorityLevelConfiguration',
  'A priority level, which divides the requests in progress among users.',
  {
    spec: embedded(2, PriorityLevelConfigurationSpecSchema, 'Limits of its requests.'),
    status: filled(3, PriorityLevelConfigurationStatusSchema, 'State that the server observes.'),
  },
);
export interface PriorityLevelConfiguration extends KubeObject, Infer<typeof level> {}
export const PriorityLevelConfigurationSchema: Schema<PriorityLevelConfiguration> = level;
