import { statusErrors } from '../errors/status-error.ts';
import { type FieldError, fieldError } from '../meta/field-error.ts';
import type { DeleteParameters } from './resource-service.ts';

const deleteOptions = { group: 'meta.k8s.io', kind: 'DeleteOptions' } as const;
const ignoring = (message: string) =>
  fieldError.invalid('ignoreStoreReadErrorWithClusterBreakingPotential', true, message);
/** The specification types it as int32. */
const maxGraceSeconds = 2 ** 31 - 1;
const policies: readonly string[] = ['Foreground', 'Background', 'Orphan'];

/**
 * Checks the options of a delete: see docs/reference/api-rules.md#options-of-a-delete. @throws StatusError 422 of kind
 * DeleteOptions.
 */
export function checkDeleteParameters(parameters: DeleteParameters, collection = false): void {
  const { orphanDependents, propagationPolicy: policy, gracePeriodSeconds: grace } = parameters;
  const problems: FieldError[] = [];
  if (grace !== undefined && grace < 0) {
    problems.push(fieldError.invalid('gracePeriodSeconds', grace, 'must be greater than or equal to 0'));
  } else if (grace !== undefined && grace > maxGraceSeconds) {
    problems.push(fieldError.invalid('gracePeriodSeconds', grace, `must be less than or equal to ${maxGraceSeconds}`));
  }
  if (policy !== undefined && !policies.includes(policy)) {
    problems.push(fieldError.notSupported('propagationPolicy', policy, policies));
  }
  if (policy !== undefined && orphanDependents !== undefined) {
    problems.push(fieldError.invalid('propagationPolicy', policy, 'cannot be combined with orphanDependents'));
  }
  if (parameters.ignoreStoreReadErrorWithClusterBreakingPotential) {
    if (collection)
      problems.push(ignoring('is not allowed with DELETECOLLECTION, try again after removing the option'));
    const others = {
      dryRun: parameters.dryRun,
      propagationPolicy: policy !== undefined,
      orphanDependents: orphanDependents !== undefined,
      gracePeriodSeconds: parameters.gracePeriodSeconds !== undefined,
      preconditions: parameters.uid !== undefined || parameters.resourceVersion !== undefined,
    };
    for (const [name, set] of Object.entries(others))
      if (set) problems.push(ignoring(`cannot be set together with .${name}`));
  }
  if (problems.length > 0) throw statusErrors.invalid(deleteOptions, '', problems);
}
