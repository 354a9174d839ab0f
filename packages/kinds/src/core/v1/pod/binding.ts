import {
  type FieldError,
  fieldError,
  formatTime,
  type ParentAccess,
  type Status,
  type SubresourceCall,
  type SubresourceDefinition,
  statusErrors,
} from '@keelson/core';
import { Binding as BindingKind } from '../binding.ts';
import type { Binding, Pod, PodCondition } from '../schema/index.ts';

const success: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/** Assigns a pod to a node, as a scheduler requests it: see docs/reference/api-rules.md#binding. */
export const bindingSubresource: SubresourceDefinition = {
  type: 'action',
  name: 'binding',
  bodyKind: { group: '', version: 'v1', kind: 'Binding' },
  schema: BindingKind.schema,
  async run({ parent, body, dryRun, now }: SubresourceCall<Pod, Binding>) {
    const errors = targetErrors(body);
    if (errors.length > 0)
      throw statusErrors.invalid({ group: '', kind: 'Binding' }, body.metadata?.name ?? parent.name, errors);
    const { uid, resourceVersion } = body.metadata ?? {};
    await parent.update((pod) => assign(pod, body, parent, now), {
      as: 'raw',
      dryRun,
      ...(uid ? { uid } : {}),
      ...(resourceVersion ? { resourceVersion } : {}),
    });
    return { code: 201, object: success };
  },
};

function targetErrors(binding: Binding): FieldError[] {
  const { kind, name } = binding.target ?? {};
  const errors: FieldError[] = [];
  if (kind && kind !== 'Node') errors.push(fieldError.notSupported('target.kind', kind, ['Node', '<empty>']));
  if (!name) errors.push(fieldError.required('target.name'));
  return errors;
}

function assign(pod: Pod, binding: Binding, parent: ParentAccess<Pod>, now: Date): void {
  const refuse = (why: string) => {
    throw statusErrors.conflict({ group: '', resource: 'pods/binding' }, parent.name, why);
  };
  if (pod.metadata?.deletionTimestamp) refuse(`pod ${parent.name} is being deleted, cannot be assigned to a host`);
  if (pod.spec.nodeName) refuse(`pod ${parent.name} is already assigned to node "${pod.spec.nodeName}"`);
  if (pod.spec.schedulingGates?.length) refuse(`pod ${parent.name} has non-empty .spec.schedulingGates`);
  pod.spec.nodeName = binding.target.name ?? '';
  const annotations = binding.metadata?.annotations;
  if (annotations && pod.metadata) pod.metadata.annotations = { ...pod.metadata.annotations, ...annotations };
  const scheduled: PodCondition = {
    type: 'PodScheduled',
    status: 'True',
    lastTransitionTime: formatTime(now),
  };
  pod.status ??= {};
  pod.status.conditions = [...(pod.status.conditions ?? []).filter(({ type }) => type !== 'PodScheduled'), scheduled];
}
