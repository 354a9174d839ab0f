import {
  type Column,
  defineKind,
  dns1035LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
  pathSegmentErrors,
  qualifiedNameErrors,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import {
  checkLabelSelector,
  checkOneOf,
  checkText,
  checkUnique,
  type Errors,
  newErrors,
  pushInvalid,
} from '../../validation/checks.ts';
import { checkConditions } from '../../validation/conditions.ts';
import { selectorText } from '../../workload/workload-columns.ts';
import { checkMatchConditions, checkRule, defaultSelection } from './check-rules.ts';
import {
  type AuditAnnotation,
  type MatchResources,
  type NamedRuleWithOperations,
  type ParamKind,
  type ParamRef,
  ValidatingAdmissionPolicyBindingSchema,
  type ValidatingAdmissionPolicyBinding as ValidatingAdmissionPolicyBindingType,
  ValidatingAdmissionPolicySchema,
  type ValidatingAdmissionPolicy as ValidatingAdmissionPolicyType,
  type Validation,
  type Variable,
} from './schema/policies.ts';

const reasons = ['Forbidden', 'Invalid', 'RequestEntityTooLarge'];
const actions = ['Audit', 'Deny', 'Warn'];
const maxAuditAnnotations = 20;
const maxValueExpression = 5 * 1024;

/** The parameter kind of a policy or binding, in the format of `kubectl get`. */
function kindText(kind: ParamKind | undefined): string {
  return kind ? `${kind.apiVersion}/${kind.kind}` : '<unset>';
}

const policyColumns: readonly Column<ValidatingAdmissionPolicyType>[] = [
  nameColumn(),
  column('Validations', 'integer', 'Number of rules.', ({ spec }) => spec?.validations?.length ?? 0),
  column('ParamKind', 'string', 'Kind of the parameters.', ({ spec }) => kindText(spec?.paramKind)),
  ageColumn,
];

const bindingColumns: readonly Column<ValidatingAdmissionPolicyBindingType>[] = [
  nameColumn(),
  column('PolicyName', 'string', 'Name of the policy.', ({ spec }) => spec?.policyName ?? ''),
  column('ParamRef', 'string', 'Parameters of the policy.', ({ spec }) => paramText(spec?.paramRef)),
  ageColumn,
];

function paramText(ref: ParamRef | undefined): string {
  if (!ref?.name) return ref?.selector ? selectorText(ref.selector) : '<unset>';
  return `${ref.namespace || '*'}/${ref.name}`;
}

/** Accepts or denies requests by CEL expressions. The admission that evaluates them also checks the expressions. */
export const ValidatingAdmissionPolicy: KindDefinition<ValidatingAdmissionPolicyType> = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingAdmissionPolicy',
  scope: 'Cluster',
  names: { plural: 'validatingadmissionpolicies', categories: ['api-extensions'] },
  schema: ValidatingAdmissionPolicySchema,
  strategy: {
    generation: 'spec',
    statusKeepsMetadata: true,
    allowUnconditionalUpdate: false,
    default({ spec }) {
      if (!spec) return;
      spec.failurePolicy ??= 'Fail';
      setDefaults(spec.matchConstraints);
    },
    validate: checkPolicy,
    validateStatusUpdate({ status }) {
      const errors = newErrors();
      checkConditions(status?.conditions, 'status.conditions', errors);
      for (const [i, { fieldRef, warning }] of (status?.typeChecking?.expressionWarnings ?? []).entries()) {
        const path = `status.typeChecking.expressionWarnings[${i}]`;
        checkText(warning, `${path}.warning`, errors);
        checkText(fieldRef, `${path}.fieldRef`, errors);
      }
      return errors;
    },
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns: policyColumns,
});
export type ValidatingAdmissionPolicy = ValidatingAdmissionPolicyType;

/** Applies a policy to requests, with parameters. */
export const ValidatingAdmissionPolicyBinding: KindDefinition<ValidatingAdmissionPolicyBindingType> = defineKind({
  group: 'admissionregistration.k8s.io',
  version: 'v1',
  kind: 'ValidatingAdmissionPolicyBinding',
  scope: 'Cluster',
  names: { categories: ['api-extensions'] },
  schema: ValidatingAdmissionPolicyBindingSchema,
  strategy: {
    generation: 'spec',
    allowUnconditionalUpdate: false,
    default({ spec }) {
      setDefaults(spec?.matchResources);
    },
    validate: checkBinding,
  },
  columns: bindingColumns,
});
export type ValidatingAdmissionPolicyBinding = ValidatingAdmissionPolicyBindingType;

function setDefaults(resources: MatchResources | undefined): void {
  const { resourceRules = [], excludeResourceRules = [] } = resources ?? {};
  if (resources) defaultSelection(resources, [...resourceRules, ...excludeResourceRules]);
}

function checkPolicy({ metadata, spec = {} }: ValidatingAdmissionPolicyType): FieldError[] {
  const errors = newErrors();
  checkOneOf(spec.failurePolicy, ['Fail', 'Ignore'], 'spec.failurePolicy', errors);
  if (spec.paramKind) checkParamKind(spec.paramKind, 'spec.paramKind', errors);
  if (spec.matchConstraints) {
    checkMatchResources(spec.matchConstraints, 'spec.matchConstraints', errors);
    // Without rules, a policy would apply to objects of unknown types.
    if (!spec.matchConstraints.resourceRules?.length) {
      errors.push(fieldError.required('spec.matchConstraints.resourceRules'));
    }
  } else errors.push(fieldError.required('spec.matchConstraints'));
  checkMatchConditions(spec.matchConditions, 'spec.matchConditions', errors);
  checkVariables(spec.variables, errors);
  const { validations = [], auditAnnotations = [] } = spec;
  if (validations.length === 0 && auditAnnotations.length === 0) {
    const text = 'validations or auditAnnotations must contain at least one item';
    errors.push(fieldError.required('spec.validations', text), fieldError.required('spec.auditAnnotations', text));
  }
  for (const [i, validation] of validations.entries()) checkValidation(validation, `spec.validations[${i}]`, errors);
  checkAuditAnnotations(auditAnnotations, metadata?.name ?? '', errors);
  return errors;
}

function checkParamKind({ apiVersion = '', kind = '' }: ParamKind, path: string, errors: Errors): void {
  const place = `${path}.apiVersion`;
  if (checkText(apiVersion, place, errors)) {
    const [first = '', second, ...rest] = apiVersion.split('/');
    const [group, version] = second === undefined ? ['', first] : [first, second];
    if (rest.length > 0) {
      errors.push(fieldError.invalid(place, apiVersion, `unexpected GroupVersion string: ${apiVersion}`));
    } else if (version === '') errors.push(fieldError.invalid(place, apiVersion, 'version must be specified'));
    else {
      const wrong = group === '' ? [] : dns1123SubdomainErrors(group);
      if (wrong.length > 0) errors.push(fieldError.invalid(place, group, wrong.join(',')));
      const problems = dns1035LabelErrors(version);
      if (problems.length > 0) errors.push(fieldError.invalid(place, version, problems.join(',')));
    }
  }
  if (!checkText(kind, `${path}.kind`, errors)) return;
  const problems = dns1035LabelErrors(kind.toLowerCase());
  if (problems.length > 0) {
    const text = `may have mixed case, but should otherwise match: ${problems.join(',')}`;
    errors.push(fieldError.invalid(`${path}.kind`, kind, text));
  }
}

function checkMatchResources(resources: MatchResources, path: string, errors: Errors): void {
  checkOneOf(resources.matchPolicy, ['Equivalent', 'Exact'], `${path}.matchPolicy`, errors);
  checkLabelSelector(resources.namespaceSelector, `${path}.namespaceSelector`, errors);
  checkLabelSelector(resources.objectSelector, `${path}.objectSelector`, errors);
  checkNamedRules(resources.resourceRules, `${path}.resourceRules`, errors);
  checkNamedRules(resources.excludeResourceRules, `${path}.excludeResourceRules`, errors);
}

function checkNamedRules(rules: readonly NamedRuleWithOperations[] = [], path: string, errors: Errors): void {
  for (const [i, rule] of rules.entries()) {
    const names = new Set<string>();
    for (const [j, name] of (rule.resourceNames ?? []).entries()) {
      const place = `${path}[${i}].resourceNames[${j}]`;
      pushInvalid(pathSegmentErrors(name), name, place, errors);
      checkUnique(name, names, place, errors);
    }
    checkRule(rule, `${path}[${i}]`, errors);
  }
}

const words = 'as break const continue else false for function if import in let loop null package return true var void';
const reserved = new Set([...words.split(' '), 'namespace', 'while']);

function checkVariables(variables: readonly Variable[] = [], errors: Errors): void {
  for (const [i, { name, expression }] of variables.entries()) {
    const path = `spec.variables[${i}]`;
    if (name.trim() === '') errors.push(fieldError.required(`${path}.name`, 'name is not specified'));
    else if (!/^[_a-zA-Z][_a-zA-Z0-9]*$/.test(name) || reserved.has(name)) {
      errors.push(fieldError.invalid(`${path}.name`, name, 'must be a valid CEL identifier'));
    }
    checkExpression(expression, `${path}.expression`, errors);
  }
}

function checkExpression(expression: string, path: string, errors: Errors, what = 'expression'): void {
  if (expression.trim() === '') errors.push(fieldError.required(path, `${what} is not specified`));
}

function checkValidation(validation: Validation, path: string, errors: Errors): void {
  const { expression, message = '', messageExpression = '', reason } = validation;
  checkExpression(expression, `${path}.expression`, errors);
  if (messageExpression !== '' && messageExpression.trim() === '') {
    const text = 'must be non-empty if specified';
    errors.push(fieldError.invalid(`${path}.messageExpression`, messageExpression, text));
  }
  if (message !== '' && message.trim() === '') {
    errors.push(fieldError.invalid(`${path}.message`, message, 'must be non-empty if specified'));
  } else if (/[\n\r]/.test(message.trim())) {
    errors.push(fieldError.invalid(`${path}.message`, message, 'must not contain line breaks'));
  }
  checkOneOf(reason, reasons, `${path}.reason`, errors);
}

function checkAuditAnnotations(annotations: readonly AuditAnnotation[], policy: string, errors: Errors): void {
  const path = 'spec.auditAnnotations';
  if (annotations.length > maxAuditAnnotations) {
    const text = `must not have more than ${maxAuditAnnotations} auditAnnotations`;
    errors.push(fieldError.invalid(path, annotations, text));
  }
  const keys = new Set<string>();
  for (const [i, { key, valueExpression }] of annotations.entries()) {
    const place = `${path}[${i}].key`;
    if (policy === '') errors.push(fieldError.invalid(place, key, 'requires metadata.name be non-empty'));
    else pushInvalid(qualifiedNameErrors(`${policy}/${key}`), `${policy}/${key}`, place, errors);
    const value = `${path}[${i}].valueExpression`;
    checkExpression(valueExpression, value, errors, 'valueExpression');
    if (valueExpression.trim().length > maxValueExpression) {
      errors.push(fieldError.required(value, `must not exceed ${maxValueExpression} bytes in length`));
    }
    checkUnique(key, keys, place, errors);
  }
}

function checkBinding({ spec = {} }: ValidatingAdmissionPolicyBindingType): FieldError[] {
  const errors = newErrors();
  const { policyName = '', paramRef, matchResources, validationActions = [] } = spec;
  if (checkText(policyName, 'spec.policyName', errors)) {
    pushInvalid(dns1123SubdomainErrors(policyName), policyName, 'spec.policyName', errors);
  }
  if (paramRef) checkParamRef(paramRef, 'spec.paramRef', errors);
  if (matchResources) checkMatchResources(matchResources, 'spec.matchResources', errors);
  checkActions(validationActions, 'spec.validationActions', errors);
  return errors;
}

function checkParamRef(ref: ParamRef, path: string, errors: Errors): void {
  const { name = '', selector, parameterNotFoundAction: action = '' } = ref;
  if (name !== '') pushInvalid(pathSegmentErrors(name), name, `${path}.name`, errors);
  if (selector) checkLabelSelector(selector, `${path}.selector`, errors);
  if (name !== '' && selector) {
    for (const field of ['name', 'selector']) {
      errors.push(fieldError.forbidden(`${path}.${field}`, 'name and selector are mutually exclusive'));
    }
  }
  if (name === '' && !selector) errors.push(fieldError.required(path, 'one of name or selector must be specified'));
  if (checkText(action, `${path}.parameterNotFoundAction`, errors)) {
    checkOneOf(action, ['Deny', 'Allow'], `${path}.parameterNotFoundAction`, errors);
  }
}

function checkActions(values: readonly string[], path: string, errors: Errors): void {
  const seen = new Set<string>();
  for (const [i, action] of values.entries()) {
    checkOneOf(action, actions, `${path}[${i}]`, errors);
    checkUnique(action, seen, `${path}[${i}]`, errors);
  }
  if (seen.has('Deny') && seen.has('Warn')) {
    const why = 'repeating the same validation failure information in the API response and headers serves no purpose';
    errors.push(fieldError.invalid(path, values, `must not contain both Deny and Warn (${why})`));
  }
  if (seen.size === 0) errors.push(fieldError.required(path, 'at least one validation action is required'));
}
