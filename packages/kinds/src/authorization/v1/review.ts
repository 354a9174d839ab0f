import {
  type AccessAttributes,
  type AccessDecision,
  type AccessRules,
  addErrors,
  type FieldError,
  fieldError,
  fieldSelectorOf,
  isFull,
  type KubeObject,
  statusErrors,
  type UserInfo,
  type VirtualCall,
} from '@keelson/core';
import { checkExpression } from '@keelson/core/internal';
import type {
  FieldSelectorAttributes,
  NonResourceAttributes,
  ResourceAttributes,
  SubjectAccessReviewStatus,
  SubjectRulesReviewStatus,
} from './schema/index.ts';

/** The request whose access is checked, in the fields that all versions share. */
export interface AccessQuestion {
  readonly resourceAttributes?: ResourceAttributes;
  readonly nonResourceAttributes?: NonResourceAttributes;
}

/** The user whose access is checked, without groups, whose field name depends on the version. */
export interface Subject {
  readonly user?: string;
  readonly uid?: string;
  readonly extra?: Record<string, string[]>;
}

/** Requires exactly one of the two kinds of request: see docs/reference/api-rules.md#access-reviews. */
export function checkQuestion({ resourceAttributes, nonResourceAttributes }: AccessQuestion): FieldError[] {
  if (resourceAttributes && nonResourceAttributes) {
    return [
      fieldError.invalid(
        'spec.nonResourceAttributes',
        nonResourceAttributes,
        'cannot be specified in combination with resourceAttributes',
      ),
    ];
  }
  if (resourceAttributes || nonResourceAttributes) return [];
  return [
    fieldError.invalid(
      'spec.resourceAttributes',
      null,
      'exactly one of nonResourceAttributes or resourceAttributes must be specified',
    ),
  ];
}

interface GivenSelector {
  readonly rawSelector?: string;
  readonly requirements?: readonly { readonly key: string; readonly operator: string; readonly values?: string[] }[];
}

/** Adds what is wrong with a selector. Unknown operators are permitted, because newer servers may send them. */
function checkSelector(given: GivenSelector, path: string, errors: FieldError[], ofLabels: boolean): void {
  const { rawSelector = '', requirements = [] } = given;
  if (rawSelector !== '' && requirements.length > 0)
    errors.push(
      fieldError.invalid(`${path}.rawSelector`, rawSelector, 'may not specified at the same time as requirements'),
    );
  if (rawSelector === '' && requirements.length === 0)
    errors.push(
      fieldError.required(`${path}.requirements`, `when ${path} is specified, requirements or rawSelector is required`),
    );
  for (const [i, requirement] of requirements.entries()) {
    if (isFull(errors)) return;
    const at = `${path}.requirements[${i}]`;
    const { key, operator, values = [] } = requirement;
    if (ofLabels) {
      const found: FieldError[] = [];
      checkExpression(requirement, at, found);
      addErrors(
        errors,
        found.filter(({ field }) => field !== `${at}.operator`),
      );
      continue;
    }
    if (!key) errors.push(fieldError.required(`${at}.key`, 'must be specified'));
    if ((operator === 'In' || operator === 'NotIn') && values.length === 0)
      errors.push(fieldError.required(`${at}.values`, "must be specified when `operator` is 'In' or 'NotIn'"));
    if ((operator === 'Exists' || operator === 'DoesNotExist') && values.length > 0)
      errors.push(
        fieldError.forbidden(`${at}.values`, "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"),
      );
  }
}

/** Checks the selectors of the request. */
export function checkSelectors({ resourceAttributes }: AccessQuestion): FieldError[] {
  const { fieldSelector, labelSelector } = resourceAttributes ?? {};
  const errors: FieldError[] = [];
  const path = 'spec.resourceAttributes';
  if (fieldSelector) checkSelector(fieldSelector, `${path}.fieldSelector`, errors, false);
  if (labelSelector) checkSelector(labelSelector, `${path}.labelSelector`, errors, true);
  return errors;
}

/** Requires a user or a group. */
export function checkSubject({ user }: Subject, groups: readonly string[] | undefined): FieldError[] {
  if (user || groups?.length) return [];
  return [fieldError.invalid('spec.user', user ?? '', 'at least one of user or group must be specified')];
}

/** Rejects metadata except the fields in `allowed`. */
export function checkReviewMetadata({ metadata = {} }: KubeObject, allowed: readonly string[] = []): FieldError[] {
  const given = Object.entries(metadata).filter(([name, value]) => {
    if (allowed.includes(name) || name === 'managedFields' || value === null || value === undefined || value === '')
      return false;
    return typeof value !== 'object' || Object.keys(value).length > 0;
  });
  if (given.length === 0) return [];
  const but = allowed.length > 0 ? ` except for ${allowed.join(', ')}` : '';
  return [fieldError.invalid('metadata', Object.fromEntries(given), `must be empty${but}`)];
}

/** Requires a resource request in the namespace of the review. */
export function checkLocalQuestion(question: AccessQuestion, namespace: string | undefined): FieldError[] {
  const errors: FieldError[] = [];
  const { resourceAttributes, nonResourceAttributes } = question;
  if (resourceAttributes && (resourceAttributes.namespace ?? '') !== (namespace ?? '')) {
    errors.push(
      fieldError.invalid(
        'spec.resourceAttributes.namespace',
        resourceAttributes.namespace ?? '',
        'must match metadata.namespace',
      ),
    );
  }
  if (nonResourceAttributes) {
    errors.push(
      fieldError.invalid('spec.nonResourceAttributes', nonResourceAttributes, 'disallowed on this kind of request'),
    );
  }
  return errors;
}

/**
 * The selector as a request has it. Requirements that a request cannot express are left out, as in Kubernetes: what
 * remains selects more objects, so that the answer never allows more than the request.
 */
function fieldSelectorText({ rawSelector, requirements = [] }: FieldSelectorAttributes): string {
  if (rawSelector) return rawSelector;
  return fieldSelectorOf(
    requirements.flatMap(({ key, operator, values: [value, ...more] = [] }) => {
      const known = operator === 'In' || operator === 'NotIn';
      if (!known || value === undefined || more.length > 0 || /[\\,=!]/.test(key)) return [];
      return [{ field: key, operator: operator === 'In' ? ('=' as const) : ('!=' as const), value }];
    }),
  ).toString();
}

function attributesOf({ resourceAttributes, nonResourceAttributes }: AccessQuestion): AccessAttributes {
  const { namespace, verb, group, version, resource, subresource, name, fieldSelector } = resourceAttributes ?? {};
  return {
    verb: verb ?? nonResourceAttributes?.verb ?? '',
    isResourceRequest: resourceAttributes !== undefined,
    apiGroup: group ?? '',
    apiVersion: version ?? '',
    namespace: namespace ?? '',
    resource: resource ?? '',
    subresource: subresource ?? '',
    name: name ?? '',
    path: nonResourceAttributes?.path ?? '',
    ...(fieldSelector ? { fieldSelector: fieldSelectorText(fieldSelector) } : {}),
  };
}

/** The user that a review describes. */
export function subjectOf({ user, uid, extra }: Subject, groups: readonly string[] | undefined): UserInfo {
  return {
    name: user ?? '',
    groups: groups ?? [],
    ...(uid ? { uid } : {}),
    ...(extra ? { extra } : {}),
  };
}

function statusOf({ allowed, denied, reason }: AccessDecision): SubjectAccessReviewStatus {
  return { allowed, ...(denied && !allowed ? { denied } : {}), ...(reason ? { reason } : {}) };
}

/** The decision of the server's authorizer. */
export async function decide(
  call: VirtualCall,
  question: AccessQuestion,
  user: UserInfo,
): Promise<SubjectAccessReviewStatus> {
  return statusOf(await call.authorizer.authorize(attributesOf(question), user));
}

function statusOfRules(rules: AccessRules): SubjectRulesReviewStatus {
  return {
    resourceRules: rules.resourceRules.map(({ verbs, apiGroups, resources, resourceNames }) => ({
      verbs: [...verbs],
      apiGroups: [...apiGroups],
      resources: [...resources],
      ...(resourceNames?.length ? { resourceNames: [...resourceNames] } : {}),
    })),
    nonResourceRules: rules.nonResourceRules.map(({ verbs, nonResourceURLs }) => ({
      verbs: [...verbs],
      nonResourceURLs: [...nonResourceURLs],
    })),
    incomplete: rules.incomplete,
    ...(rules.evaluationError ? { evaluationError: rules.evaluationError } : {}),
  };
}

/** The rules of the caller in a namespace. @throws StatusError 400 without a namespace. */
export async function listRules(call: VirtualCall, namespace: string | undefined): Promise<SubjectRulesReviewStatus> {
  if (!namespace) throw statusErrors.badRequest('no namespace on request');
  return statusOfRules(await call.authorizer.rulesFor(call.context.user, namespace));
}
