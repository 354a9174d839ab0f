import {
  defineKind,
  type FieldError,
  fieldError,
  formatTime,
  type KindDefinition,
  type KubeObject,
  type ParentAccess,
  type Status,
  type SubresourceCall,
  type SubresourceDefinition,
  statusErrors,
} from '@keelson/core';
import { type Binding as BindingBody, BindingSchema, type Pod, type PodCondition } from '../schema/index.ts';

const success: Status = { kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 };

/** Assigns the pod of its name to a node: the same as the subresource `binding` of that pod. */
export const Binding: KindDefinition<BindingBody> = defineKind({
  group: '',
  version: 'v1',
  kind: 'Binding',
  schema: BindingSchema,
  virtual: {
    create: (binding, call) => {
      const name = binding.metadata?.name;
      if (!name) throw statusErrors.badRequest('Name parameter required.');
      const pods = { group: '', version: 'v1', resource: 'pods' };
      return call.createSubresource(pods, name, 'binding', binding) as Promise<BindingBody | Status>;
    },
  },
});
export type Binding = BindingBody;

/** Assigns a pod to a node, as a scheduler requests it: see docs/reference/api-rules.md#binding. */
export const bindingSubresource: SubresourceDefinition = {
  type: 'action',
  name: 'binding',
  bodyKind: { group: '', version: 'v1', kind: 'Binding' },
  schema: Binding.schema,
  async run({ parent, body, dryRun, now }: SubresourceCall<Pod, BindingBody>) {
    requireSameName(body, parent.name, 'Binding');
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

/** @throws StatusError 400 unless the body of an action has the name of the pod */
export function requireSameName({ metadata }: KubeObject, name: string, kind: string): void {
  if (metadata?.name !== name) throw statusErrors.badRequest(`name in URL does not match name in ${kind} object`);
}

function targetErrors(binding: BindingBody): FieldError[] {
  const { kind, name } = binding.target ?? {};
  const errors: FieldError[] = [];
  if (kind && kind !== 'Node') errors.push(fieldError.notSupported('target.kind', kind, ['Node', '<empty>']));
  if (!name) errors.push(fieldError.required('target.name'));
  return errors;
}

function assign(pod: Pod, binding: BindingBody, parent: ParentAccess<Pod>, now: Date): void {
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
