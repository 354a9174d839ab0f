import { type AdmissionPlugin, type AdmissionRequest, type KindDefinition, type KubeObject, statusErrors } from '@keelson/core';
import type { Pod } from '@keelson/kinds';
import { nodeNameOf } from './node-access.ts';

/** Marks the pods that a node shows for its own files. */
const mirrorAnnotation = 'kubernetes.io/config.mirror';

const boundTo = (object: KubeObject | undefined): string | undefined => (object as Pod | undefined)?.spec?.nodeName;

/** By name, so that no second copy of a kind gets by. */
const isCore = ({ group, kind }: KindDefinition, name: string): boolean => group === '' && kind === name;

/** Why a node may not do this; undefined when it may. What it may do at all is for the authorizer to say. */
function problem({ operation, kind, subresource, object, oldObject }: AdmissionRequest, nodeName: string): string | undefined {
  if (isCore(kind, 'Node') && operation === 'create' && object?.metadata?.name !== nodeName) {
    return `the node ${nodeName} may only make the node object of its own name`;
  }
  if (!isCore(kind, 'Pod')) return undefined;
  if (operation !== 'create' || subresource !== undefined) {
    return boundTo(oldObject) === nodeName ? undefined : `the pod is not on the node ${nodeName}`;
  }
  if (object?.metadata?.annotations?.[mirrorAnnotation] === undefined) {
    return `a node may only make pods that mirror its files, with the annotation ${mirrorAnnotation}`;
  }
  return boundTo(object) === nodeName
    ? undefined
    : `a pod that mirrors a file of the node ${nodeName} names that node in spec.nodeName`;
}

/** Keeps nodes to their own node object and to the pods that are on them, which rules of access cannot tell. */
export const nodeRestriction: AdmissionPlugin = {
  name: 'NodeRestriction',
  handles: ({ context }) => nodeNameOf(context.user) !== undefined,
  validate(request) {
    const { kind, name, context } = request;
    const why = problem(request, nodeNameOf(context.user) ?? '');
    if (why !== undefined) throw statusErrors.forbidden({ group: kind.group, resource: kind.names.plural }, name, why);
  },
};
