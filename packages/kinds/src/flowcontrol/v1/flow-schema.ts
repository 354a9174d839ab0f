import {
  type Column,
  defineKind,
  dns1123LabelErrors,
  dns1123SubdomainErrors,
  type FieldError,
  fieldError,
  type KindDefinition,
} from '@keelson/core';
import { ageColumn, column, nameColumn } from '../../columns/columns.ts';
import { checkText, checkUnique, type Errors, newErrors, pushInvalid, sameJson } from '../../validation/checks.ts';
import { defaultFlowSchemas } from './default-objects.ts';
import {
  FlowSchemaSchema,
  type FlowSchema as FlowSchemaType,
  type NonResourcePolicyRule,
  type PolicyRulesWithSubjects,
  type ResourcePolicyRule,
  type ServiceAccountSubject,
  type Subject,
} from './schema.ts';

const defaultPrecedence = 1_000;
const maxPrecedence = 10_000;
/** Schemas whose spec cannot be changed. */
const fixed: ReadonlySet<string> = new Set(['exempt', 'catch-all']);
const verbs = ['create', 'delete', 'deletecollection', 'get', 'list', 'patch', 'proxy', 'update', 'watch'];
const subjectKinds = ['Group', 'ServiceAccount', 'User'];
const distinguishers = ['ByNamespace', 'ByUser'];
const all = '*';

const columns: readonly Column<FlowSchemaType>[] = [
  nameColumn(),
  column('PriorityLevel', 'string', 'The priority level.', ({ spec }) => spec.priorityLevelConfiguration?.name ?? ''),
  column('MatchingPrecedence', 'string', 'Order of the schemas.', ({ spec }) => spec.matchingPrecedence ?? 0),
  column(
    'DistinguisherMethod',
    'string',
    'What divides its requests into flows.',
    ({ spec }) => spec.distinguisherMethod?.type ?? '<none>',
  ),
  ageColumn,
  column(
    'MissingPL',
    'string',
    'Whether the priority level is missing.',
    ({ status }) => status?.conditions?.find(({ type }) => type === 'Dangling')?.status ?? '?',
  ),
];

/** Assigns requests to a priority level of flow control. */
export const FlowSchema: KindDefinition<FlowSchemaType> = defineKind({
  group: 'flowcontrol.apiserver.k8s.io',
  version: 'v1',
  kind: 'FlowSchema',
  scope: 'Cluster',
  schema: FlowSchemaSchema,
  strategy: {
    generation: 'spec',
    default({ spec }) {
      spec.matchingPrecedence ||= defaultPrecedence;
    },
    validate: validateFlowSchema,
    validateStatusUpdate: ({ status }) => conditionErrors(status?.conditions),
  },
  subresources: [{ type: 'status', name: 'status' }],
  columns,
});
export type FlowSchema = FlowSchemaType;

/** Conditions of this group need only a type, and no type twice. */
export function conditionErrors(conditions: readonly { readonly type?: string }[] = []): FieldError[] {
  const errors = newErrors();
  const types = new Set<string>();
  for (const [i, { type = '' }] of conditions.entries()) {
    checkUnique(type, types, `status.conditions[${i}].type`, errors);
    checkText(type, `status.conditions[${i}].type`, errors);
  }
  return errors;
}

function validateFlowSchema({ metadata, spec }: FlowSchemaType): FieldError[] {
  const errors = newErrors();
  const { matchingPrecedence: precedence, distinguisherMethod, priorityLevelConfiguration, rules = [] } = spec;
  const name = metadata?.name ?? '';
  const at = 'spec.matchingPrecedence';
  if (precedence <= 0) errors.push(fieldError.invalid(at, precedence, 'must be a positive value'));
  if (precedence > maxPrecedence) {
    errors.push(fieldError.invalid(at, precedence, `must not be greater than ${maxPrecedence}`));
  }
  if (precedence === 1 && name !== 'exempt') {
    errors.push(fieldError.invalid(at, precedence, "only the schema named 'exempt' may have matchingPrecedence 1"));
  }
  if (distinguisherMethod !== undefined && !distinguishers.includes(distinguisherMethod.type)) {
    errors.push(fieldError.notSupported('spec.distinguisherMethod.type', distinguisherMethod.type, distinguishers));
  }
  const level = priorityLevelConfiguration.name;
  const levelPath = 'spec.priorityLevelConfiguration.name';
  if (level === '') errors.push(fieldError.required(levelPath, 'must reference a priority level'));
  else pushInvalid(dns1123SubdomainErrors(level), level, levelPath, errors);
  for (const [i, rule] of rules.entries()) checkRules(rule, `spec.rules[${i}]`, errors);
  if (fixed.has(name)) {
    const expected = defaultFlowSchemas.find((schema) => schema.metadata?.name === name);
    if (!sameJson(spec, expected?.spec)) {
      errors.push(fieldError.invalid('spec', spec, `spec of '${name}' must equal the fixed value`));
    }
  }
  return errors;
}

function checkRules(rules: PolicyRulesWithSubjects, path: string, errors: Errors): void {
  const { subjects, resourceRules = [], nonResourceRules = [] } = rules;
  if (subjects.length === 0) {
    errors.push(fieldError.required(`${path}.subjects`, 'subjects must contain at least one value'));
  }
  for (const [i, subject] of subjects.entries()) checkSubject(subject, `${path}.subjects[${i}]`, errors);
  if (resourceRules.length === 0 && nonResourceRules.length === 0) {
    const why = 'at least one of resourceRules and nonResourceRules has to be non-empty';
    errors.push(fieldError.required(path, why));
  }
  for (const [i, rule] of resourceRules.entries()) checkResourceRule(rule, `${path}.resourceRules[${i}]`, errors);
  for (const [i, rule] of nonResourceRules.entries()) {
    checkNonResourceRule(rule, `${path}.nonResourceRules[${i}]`, errors);
  }
}

function checkSubject(subject: Subject, path: string, errors: Errors): void {
  const { kind } = subject;
  if (!subjectKinds.includes(kind)) {
    errors.push(fieldError.notSupported(`${path}.kind`, kind, subjectKinds));
    return;
  }
  const fields = { ServiceAccount: 'serviceAccount', User: 'user', Group: 'group' } as const;
  for (const [other, field] of Object.entries(fields)) {
    const value = subject[field];
    if (other === kind) {
      if (value === undefined) {
        errors.push(fieldError.required(`${path}.${field}`, `${field} is required when subject kind is '${kind}'`));
      } else if (field === 'serviceAccount') {
        checkServiceAccount(value as ServiceAccountSubject, `${path}.${field}`, errors);
      } else checkText(value.name, `${path}.${field}.name`, errors);
    } else if (value !== undefined) {
      const text = `${field} is forbidden when subject kind is not '${other}'`;
      errors.push(fieldError.forbidden(`${path}.${field}`, text));
    }
  }
}

function checkServiceAccount({ name, namespace }: ServiceAccountSubject, path: string, errors: Errors): void {
  if (checkText(name, `${path}.name`, errors) && name !== all) {
    pushInvalid(dns1123SubdomainErrors(name), name, `${path}.name`, errors);
  }
  if (namespace === '') {
    errors.push(fieldError.required(`${path}.namespace`, 'must specify namespace for service account'));
  } else pushInvalid(dns1123LabelErrors(namespace), namespace, `${path}.namespace`, errors);
}

/** Rejects an empty list, and other values beside the wildcard; returns whether the values are to be checked. */
function checkNames(values: readonly string[], path: string, empty: string, what: string, errors: Errors): boolean {
  if (values.length === 0) errors.push(fieldError.required(path, empty));
  else if (!values.includes(all)) return true;
  else if (values.length > 1) {
    errors.push(fieldError.invalid(path, values, `if '*' is present, must not specify other ${what}`));
  }
  return false;
}

function checkVerbs(values: readonly string[], path: string, errors: Errors): void {
  const known = checkNames(values, path, 'verbs must contain at least one value', 'verbs', errors);
  if (known && !values.every((verb) => verbs.includes(verb))) errors.push(fieldError.notSupported(path, values, verbs));
}

function checkResourceRule(rule: ResourcePolicyRule, path: string, errors: Errors): void {
  const { apiGroups, resources, clusterScope = false, namespaces } = rule;
  checkVerbs(rule.verbs, `${path}.verbs`, errors);
  const noGroup = 'resource rules must supply at least one api group';
  checkNames(apiGroups, `${path}.apiGroups`, noGroup, 'api groups', errors);
  const noResource = 'resource rules must supply at least one resource';
  checkNames(resources, `${path}.resources`, noResource, 'resources', errors);
  if (namespaces.length === 0 && clusterScope) return;
  const noNamespace = 'resource rules that are not cluster scoped must supply at least one namespace';
  if (!checkNames(namespaces, `${path}.namespaces`, noNamespace, 'namespaces', errors)) return;
  for (const [i, namespace] of namespaces.entries()) {
    const details = dns1123LabelErrors(namespace).map(
      (detail) => `each member of this list must be '*' or a DNS-1123 label; ${detail}`,
    );
    pushInvalid(details, namespace, `${path}.namespaces[${i}]`, errors);
  }
}

function checkNonResourceRule(rule: NonResourcePolicyRule, path: string, errors: Errors): void {
  checkVerbs(rule.verbs, `${path}.verbs`, errors);
  const paths = rule.nonResourceURLs;
  const empty = 'nonResourceURLs must contain at least one value';
  if (!checkNames(paths, `${path}.nonResourceURLs`, empty, 'non-resource URLs', errors)) return;
  for (const [i, value] of paths.entries()) {
    const problem = pathProblem(value);
    if (problem !== undefined) errors.push(fieldError.invalid(`${path}.nonResourceURLs[${i}]`, value, problem));
  }
}

function pathProblem(path: string): string | undefined {
  if (path === '') return 'must not be empty';
  if (path === '/') return undefined;
  if (!path.startsWith('/')) return 'must start with slash';
  if (path.includes(' ')) return 'must not contain white-space';
  if (path.includes('//')) return 'must not contain double slash';
  const star = path.indexOf(all);
  return star === -1 || (star === path.length - 1 && path.endsWith('/*'))
    ? undefined
    : 'wildcard can only do suffix matching';
}
