import type { batchV1, coreV1, Job, Pod } from '@keelson/kinds';

/** The action of the first rule of the pod failure policy that matches a failed pod. */
export interface FailureDecision {
  readonly action: string;
  /** Why the job fails; present for the action FailJob. */
  readonly message: string;
}

/** Finds the first rule of the pod failure policy that matches a failed pod. */
export function failureDecision({ spec }: Job, pod: Pod): FailureDecision | undefined {
  for (const [at, { action, onExitCodes, onPodConditions }] of (spec.podFailurePolicy?.rules ?? []).entries()) {
    const { namespace, name } = pod.metadata ?? {};
    const end = `matching ${action} rule at index ${at}`;
    if (onExitCodes !== undefined) {
      const container = containerWith(onExitCodes, pod);
      if (container === undefined) continue;
      const code = container.state?.terminated?.exitCode;
      return {
        action,
        message: `Container ${container.name} for pod ${namespace}/${name} failed with exit code ${code} ${end}`,
      };
    }
    const condition = pod.status?.conditions?.find(({ type, status }) =>
      onPodConditions?.some((pattern) => pattern.type === type && pattern.status === status),
    );
    if (condition !== undefined)
      return { action, message: `Pod ${namespace}/${name} has condition ${condition.type} ${end}` };
  }
  return undefined;
}

/** False when the policy ignores the failure of a pod. */
export function countsAsFailure(job: Job, pod: Pod): boolean {
  return failureDecision(job, pod)?.action !== 'Ignore';
}

function containerWith(
  { containerName, operator, values }: batchV1.PodFailurePolicyOnExitCodesRequirement,
  { status }: Pod,
): coreV1.ContainerStatus | undefined {
  const all = [...(status?.containerStatuses ?? []), ...(status?.initContainerStatuses ?? [])];
  return all.find(({ name, state }) => {
    const code = state?.terminated?.exitCode ?? 0;
    if (code === 0 || (containerName !== undefined && containerName !== name)) return false;
    return values.includes(code) === (operator === 'In');
  });
}
