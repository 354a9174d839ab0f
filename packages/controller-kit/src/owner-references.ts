import type { KindDefinition, KubeObject, OwnerReference } from '@keelson/core';

/** The reference that makes `owner` the controller of an object, with `blockOwnerDeletion`. */
export function ownerReference(kind: KindDefinition, owner: KubeObject): OwnerReference {
  const { name = '', uid = '' } = owner.metadata ?? {};
  return { apiVersion: kind.apiVersion, kind: kind.kind, name, uid, controller: true, blockOwnerDeletion: true };
}

/** The owner that controls an object. */
export function controllerOf(object: KubeObject): OwnerReference | undefined {
  return object.metadata?.ownerReferences?.find(({ controller }) => controller === true);
}

/** True when `owner` controls the object. */
export function isControlledBy(object: KubeObject, owner: KubeObject): boolean {
  const uid = controllerOf(object)?.uid;
  return uid !== undefined && uid === owner.metadata?.uid;
}
