import { statusErrors } from '../errors/status-error.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { DeleteParameters } from './resource-service.ts';

const deleteOptions = { group: 'meta.k8s.io', kind: 'DeleteOptions' } as const;
const policies: readonly string[] = ['Foreground', 'Background', 'Orphan'];

/** Checks the parameters of a delete against each other; api-conventions 8.2. @throws StatusError 422 of kind DeleteOptions. */
export function checkDeleteParameters(parameters: DeleteParameters): void {
  const { orphanDependents, propagationPolicy: policy } = parameters;
  const problems: FieldError[] = [];
  if (policy !== undefined && !policies.includes(policy)) {
    problems.push(fieldError.notSupported('propagationPolicy', policy, policies));
  }
  if (policy !== undefined && orphanDependents !== undefined) {
    problems.push(fieldError.invalid('propagationPolicy', policy, 'cannot be combined with orphanDependents'));
  }
  if (problems.length > 0) throw statusErrors.invalid(deleteOptions, '', problems);
}
