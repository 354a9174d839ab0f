import { withCondition } from '@keelson/controller-kit';
import type { Clock } from '@keelson/core/runtime';
import type { CustomResourceDefinition } from '@keelson/kinds';

/** The annotation by which the Kubernetes community approves an API of its groups. */
export const approvalAnnotation = 'api-approved.kubernetes.io';

type Status = NonNullable<CustomResourceDefinition['status']>;

interface Approval {
  readonly state: 'Missing' | 'Unapproved' | 'Approved' | 'Invalid';
  readonly message: string;
}

const enhancement = 'see https://github.com/kubernetes/enhancements/pull/1111';
const rule = `protected groups must have approval annotation ${JSON.stringify(approvalAnnotation)}`;

/**
 * The approval of a definition in a group of the Kubernetes community; undefined for other groups.
 * Source: `apiextensions-apiserver/pkg/apihelpers/helpers.go`.
 */
export function apiApproval({ spec, metadata }: CustomResourceDefinition): Approval | undefined {
  if (!/(?:^|\.)(?:k8s|kubernetes)\.io$/.test(spec.group)) return undefined;
  const text = metadata?.annotations?.[approvalAnnotation] ?? '';
  if (text === '') return { state: 'Missing', message: `${rule}, ${enhancement}` };
  if (text.startsWith('unapproved')) return { state: 'Unapproved', message: `not approved: ${JSON.stringify(text)}` };
  if (/^[a-z][a-z0-9+.-]*:\/\/[^/]/i.test(text) && URL.canParse(text))
    return { state: 'Approved', message: `approved in ${text}` };
  const message = `${rule} with either a URL or a reason starting with "unapproved", ${enhancement}`;
  return { state: 'Invalid', message };
}

/** The status with the condition about the approval, for definitions in groups of the Kubernetes community. */
export function withApproval(status: Status, definition: CustomResourceDefinition, clock: Clock): Status {
  const approval = apiApproval(definition);
  if (approval === undefined) return status;
  const { state, message } = approval;
  const condition = {
    type: 'KubernetesAPIApprovalPolicyConformant',
    status: state === 'Approved' ? 'True' : 'False',
    reason: `${state}Annotation`,
    message,
  };
  const conditions = withCondition(status.conditions, condition, clock);
  return conditions === status.conditions ? status : { ...status, conditions: [...conditions] };
}
