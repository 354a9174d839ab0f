import {
  always,
  conditionSchema,
  type Infer,
  inline,
  type KubeObject,
  labelSelectorSchema,
  optional,
  type Schema,
  s,
} from '@keelson/core';
import { failurePolicyField, matchConditionsField, RuleWithOperationsSchema, selectionFields } from './rules.ts';

const v1 = 'k8s.io.api.admissionregistration.v1';

const namedRule = s.message(`${v1}.NamedRuleWithOperations`, 'Selects operations on resources, or on named ones.', {
  resourceNames: optional(1, s.list(s.string(), { listType: 'atomic' }), 'Names of objects; empty: all.'),
  ruleWithOperations: inline(2, RuleWithOperationsSchema),
});
export interface NamedRuleWithOperations extends Infer<typeof namedRule> {}
export const NamedRuleWithOperationsSchema: Schema<NamedRuleWithOperations> = namedRule;

const rules = s.list(NamedRuleWithOperationsSchema, { listType: 'atomic' });
const matchResources = s.message(`${v1}.MatchResources`, 'Selects requests.', {
  ...selectionFields({ namespaceSelector: 1, objectSelector: 2, matchPolicy: 7 }),
  resourceRules: optional(3, rules, 'Operations and resources, of which one must match.'),
  excludeResourceRules: optional(4, rules, 'Operations and resources that are left out.'),
});
export interface MatchResources extends Infer<typeof matchResources> {}
export const MatchResourcesSchema: Schema<MatchResources> = matchResources;

const paramKind = s.message(`${v1}.ParamKind`, 'Kind of the parameters of a policy.', {
  apiVersion: optional(1, s.string(), 'API version of the kind.'),
  kind: optional(2, s.string(), 'Name of the kind.'),
});
export interface ParamKind extends Infer<typeof paramKind> {}
export const ParamKindSchema: Schema<ParamKind> = paramKind;

const paramRef = s.message(`${v1}.ParamRef`, 'Objects that are the parameters of a policy.', {
  name: optional(1, s.string(), 'Name of the object, instead of a selector.'),
  namespace: optional(2, s.string(), 'Namespace of the objects; default: that of the request.'),
  selector: optional(3, labelSelectorSchema, 'Labels of the objects, instead of a name.'),
  parameterNotFoundAction: optional(4, s.string(), 'Allow or Deny: what a missing object means.', { presence: true }),
});
export interface ParamRef extends Infer<typeof paramRef> {}
export const ParamRefSchema: Schema<ParamRef> = paramRef;

const validation = s.message(`${v1}.Validation`, 'A rule for requests.', {
  expression: always(1, s.string(), 'CEL expression that is true for valid requests.'),
  message: optional(2, s.string(), 'Message for requests that are not valid.'),
  reason: optional(3, s.string(), 'Unauthorized, Forbidden, Invalid or RequestEntityTooLarge.', { presence: true }),
  messageExpression: optional(4, s.string(), 'CEL expression of the message; takes precedence over message.'),
});
export interface Validation extends Infer<typeof validation> {}
export const ValidationSchema: Schema<Validation> = validation;

const auditAnnotation = s.message(`${v1}.AuditAnnotation`, 'An annotation of audit events.', {
  key: always(1, s.string(), 'Key, to which the name of the policy is prefixed.'),
  valueExpression: always(2, s.string(), 'CEL expression of the value; null or empty: no annotation.'),
});
export interface AuditAnnotation extends Infer<typeof auditAnnotation> {}
export const AuditAnnotationSchema: Schema<AuditAnnotation> = auditAnnotation;

const variable = s.message(`${v1}.Variable`, 'A named expression that other expressions use.', {
  name: always(1, s.string(), 'Name: variables.NAME in expressions that follow.'),
  expression: always(2, s.string(), 'CEL expression of the value.'),
});
export interface Variable extends Infer<typeof variable> {}
export const VariableSchema: Schema<Variable> = variable;

const policySpec = s.message(`${v1}.ValidatingAdmissionPolicySpec`, 'What a policy examines, and its rules.', {
  paramKind: optional(1, ParamKindSchema, 'Kind of the parameters; absent: the policy has none.'),
  matchConstraints: optional(2, MatchResourcesSchema, 'Requests that the policy examines.'),
  validations: optional(3, s.list(ValidationSchema, { listType: 'atomic' }), 'Rules for the requests.'),
  failurePolicy: failurePolicyField,
  auditAnnotations: optional(5, s.list(AuditAnnotationSchema, { listType: 'atomic' }), 'Annotations of audit events.'),
  matchConditions: matchConditionsField(6),
  variables: optional(7, s.listByKey(VariableSchema, 'name'), 'Named expressions, in the order of their use.'),
});
export interface ValidatingAdmissionPolicySpec extends Infer<typeof policySpec> {}
export const ValidatingAdmissionPolicySpecSchema: Schema<ValidatingAdmissionPolicySpec> = policySpec;

const expressionWarning = s.message(`${v1}.ExpressionWarning`, 'A warning about an expression.', {
  fieldRef: always(2, s.string(), 'Path of the field with the expression.'),
  warning: always(3, s.string(), 'The warning.'),
});
export interface ExpressionWarning extends Infer<typeof expressionWarning> {}
export const ExpressionWarningSchema: Schema<ExpressionWarning> = expressionWarning;

const typeChecking = s.message(`${v1}.TypeChecking`, 'Results of the check of types.', {
  expressionWarnings: optional(1, s.list(ExpressionWarningSchema, { listType: 'atomic' }), 'Expressions with errors.'),
});
export interface TypeChecking extends Infer<typeof typeChecking> {}
export const TypeCheckingSchema: Schema<TypeChecking> = typeChecking;

const policyStatus = s.message(`${v1}.ValidatingAdmissionPolicyStatus`, 'Observations of a policy.', {
  observedGeneration: optional(1, s.int64(), 'Generation of the policy that was checked.'),
  typeChecking: optional(2, TypeCheckingSchema, 'Results of the check of types.'),
  conditions: optional(3, s.listByKey(conditionSchema, 'type'), 'Latest observations.'),
});
export interface ValidatingAdmissionPolicyStatus extends Infer<typeof policyStatus> {}
export const ValidatingAdmissionPolicyStatusSchema: Schema<ValidatingAdmissionPolicyStatus> = policyStatus;

const policy = s.message(`${v1}.ValidatingAdmissionPolicy`, 'Accepts or denies requests by CEL expressions.', {
  spec: optional(2, ValidatingAdmissionPolicySpecSchema, 'What the policy examines, and its rules.'),
  status: optional(3, ValidatingAdmissionPolicyStatusSchema, 'Observations of the policy.'),
});
export interface ValidatingAdmissionPolicy extends KubeObject, Infer<typeof policy> {}
export const ValidatingAdmissionPolicySchema: Schema<ValidatingAdmissionPolicy> = policy;

const bindingSpec = s.message(`${v1}.ValidatingAdmissionPolicyBindingSpec`, 'Where and how a policy applies.', {
  policyName: optional(1, s.string(), 'Name of the policy.'),
  paramRef: optional(2, ParamRefSchema, 'Parameters of the policy.'),
  matchResources: optional(3, MatchResourcesSchema, 'Requests that the policy examines, of those it selects.'),
  validationActions: optional(
    4,
    s.list(s.string({ values: ['Audit', 'Deny', 'Warn'] }), { listType: 'set' }),
    'Deny, Warn or Audit: what happens to requests that are not valid.',
  ),
});
export interface ValidatingAdmissionPolicyBindingSpec extends Infer<typeof bindingSpec> {}
export const ValidatingAdmissionPolicyBindingSpecSchema: Schema<ValidatingAdmissionPolicyBindingSpec> = bindingSpec;

const binding = s.message(`${v1}.ValidatingAdmissionPolicyBinding`, 'Applies a policy to requests.', {
  spec: optional(2, ValidatingAdmissionPolicyBindingSpecSchema, 'Where and how the policy applies.'),
});
export interface ValidatingAdmissionPolicyBinding extends KubeObject, Infer<typeof binding> {}
export const ValidatingAdmissionPolicyBindingSchema: Schema<ValidatingAdmissionPolicyBinding> = binding;
