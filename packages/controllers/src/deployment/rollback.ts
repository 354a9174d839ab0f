import { Deployment, type ReplicaSet } from '@keelson/kinds';
import { compareRevisions, revisionOf, rollbackToAnnotation, rolledBackAnnotations } from './annotations.ts';
import { hashLabel, isSameTemplate } from './replica-sets.ts';
import type { Rollout } from './rollout.ts';

/** The revision that a requested rollback restores, or undefined without a request. 0 means the previous revision. */
export function requestedRevision({ metadata }: Deployment): number | undefined {
  const text = metadata?.annotations?.[rollbackToAnnotation];
  return text !== undefined && /^-?\d{1,15}$/.test(text) ? Number(text) : undefined;
}

/** Restores the template of a revision. The request is removed even when the rollback is impossible. */
export async function rollBack(rollout: Rollout, request: number): Promise<void> {
  const { run, deployment } = rollout;
  const name = deployment.metadata?.name;
  const warn = (reason: string, message: string) => run.event(deployment, 'Warning', reason, message);
  const revision = request === 0 ? lastRevision(rollout.all) : BigInt(request);
  if (revision === 0n) {
    warn('DeploymentRollbackRevisionNotFound', 'Unable to find last revision.');
    return update(rollout, deployment);
  }
  const set = rollout.all.find((other) => revisionOf(other) === revision);
  if (set === undefined) {
    warn('DeploymentRollbackRevisionNotFound', 'Unable to find the revision to rollback to.');
    return update(rollout, deployment);
  }
  if (isSameTemplate(set, deployment)) {
    const message = `The rollback revision contains the same template as current deployment "${name}"`;
    warn('DeploymentRollbackTemplateUnchanged', message);
    return update(rollout, deployment);
  }
  const { metadata = {}, spec } = set.spec.template ?? {};
  const { [hashLabel]: _, ...labels } = metadata.labels ?? {};
  const template = { metadata: { ...metadata, labels }, spec: spec ?? { containers: [] } };
  const annotations = rolledBackAnnotations(deployment, set);
  await update(rollout, {
    ...deployment,
    metadata: { ...deployment.metadata, annotations },
    spec: { ...deployment.spec, template },
  });
  run.event(deployment, 'Normal', 'DeploymentRollback', `Rolled back deployment "${name}" to revision ${revision}`);
}

/** The second greatest revision; 0 when there is none. */
function lastRevision(sets: readonly ReplicaSet[]): bigint {
  const last = [...sets].sort(compareRevisions).at(-2);
  return last === undefined ? 0n : revisionOf(last);
}

async function update({ run }: Rollout, deployment: Deployment): Promise<void> {
  const { [rollbackToAnnotation]: _, ...annotations } = deployment.metadata?.annotations ?? {};
  const body = { ...deployment, metadata: { ...deployment.metadata, annotations } };
  await run.client
    .resource(Deployment)
    .namespace(deployment.metadata?.namespace ?? '')
    .update(body);
}
