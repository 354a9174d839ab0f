import { fieldError } from '@keelson/core';
import type { Errors } from '../../../validation/checks.ts';
import { checkDescendingPath } from '../../../validation/paths.ts';
import type { AppArmorProfile, Pod, PodSpec, SeccompProfile } from '../schema/index.ts';
import { eachContainer } from './default-pod-spec.ts';

/** Marks the object that shows a static pod of a node. */
export const mirrorAnnotation = 'kubernetes.io/config.mirror';
const deletionCost = 'controller.kubernetes.io/pod-deletion-cost';
// Annotations that choose profiles, from the time before the fields. Two are followed by the name of a container.
export const seccompPod = 'seccomp.security.alpha.kubernetes.io/pod';
export const seccompContainer = 'container.seccomp.security.alpha.kubernetes.io/';
export const appArmorContainer = 'container.apparmor.security.beta.kubernetes.io/';
const localhost = 'localhost/';

type Annotations = Readonly<Record<string, string>>;
const annotationOf = (annotations: Annotations, key: string): string | undefined =>
  Object.hasOwn(annotations, key) ? annotations[key] : undefined;

/** True when an annotation chooses a profile: few pods have one. */
export function hasProfileAnnotation(annotations: Annotations): boolean {
  for (const key in annotations) if (isProfileKey(key)) return true;
  return false;
}

const isProfileKey = (key: string): boolean =>
  key === seccompPod || key.startsWith(seccompContainer) || key.startsWith(appArmorContainer);

/**
 * Sets the AppArmor profiles of a new pod that annotations choose, and warns of such annotations. Nodes and admission
 * read the fields alone.
 */
export function applyAppArmorAnnotations({ metadata, spec }: Pod, warn: (text: string) => void): void {
  const { annotations } = metadata ?? {};
  if (annotations === undefined || spec.os?.name === 'windows' || !hasProfileAnnotation(annotations)) return;
  eachContainer(spec, '', (container) => {
    const key = `${appArmorContainer}${container.name}`;
    const annotation = annotationOf(annotations, key);
    if (annotation === undefined || container.securityContext?.appArmorProfile) return;
    const profile = appArmorProfileOf(annotation);
    const common = spec.securityContext?.appArmorProfile;
    if (profile && profile.type === common?.type && profile.localhostProfile === common.localhostProfile) return;
    if (profile) container.securityContext = { ...container.securityContext, appArmorProfile: profile };
    warn(`metadata.annotations[${key}]: deprecated since v1.30; use the "appArmorProfile" field instead`);
  });
}

/** The profile that an annotation names; undefined for one that is invalid. */
export function appArmorProfileOf(annotation: string): AppArmorProfile | undefined {
  if (annotation === 'unconfined') return { type: 'Unconfined' };
  if (annotation === 'runtime/default') return { type: 'RuntimeDefault' };
  const localhostProfile = annotation.startsWith(localhost) ? annotation.slice(localhost.length) : '';
  const isValid = localhostProfile !== '' && localhostProfile.trim() === localhostProfile;
  return isValid && Buffer.byteLength(localhostProfile) < 4096 ? { type: 'Localhost', localhostProfile } : undefined;
}

/**
 * Validates the annotations that choose profiles, and that they agree with the fields. @param path of the annotations,
 * @param specPath of the spec
 */
export function checkProfileAnnotations(
  annotations: Annotations | undefined,
  spec: PodSpec,
  path: string,
  specPath: string,
  errors: Errors,
): void {
  if (annotations === undefined || !hasProfileAnnotation(annotations)) return;
  const chosen = Object.entries(annotations).filter(([key]) => isProfileKey(key));
  const appArmor = chosen.filter(([key]) => key.startsWith(appArmorContainer));
  const seccomp = chosen.filter((entry) => !appArmor.includes(entry));
  for (const [key, value] of seccomp) {
    if (value.startsWith(localhost)) checkDescendingPath(value.slice(localhost.length), `${path}.${key}`, errors);
    else if (!['runtime/default', 'docker/default', 'unconfined'].includes(value)) {
      errors.push(fieldError.invalid(`${path}.${key}`, value, 'must be a valid seccomp profile'));
    }
  }
  const names = new Set<string>();
  eachContainer(spec, '', ({ name }) => names.add(name));
  for (const [key, value] of appArmor) {
    const name = key.slice(appArmorContainer.length);
    if (!names.has(name)) errors.push(fieldError.invalid(`${path}[${key}]`, name, 'container not found'));
    if (!/^($|runtime\/default$|unconfined$|localhost\/)/.test(value)) {
      const detail = `invalid AppArmor profile name: ${JSON.stringify(value)}`;
      errors.push(fieldError.invalid(`${path}[${key}]`, value, detail));
    }
  }
  checkAgreement(annotations, spec, specPath, errors);
}

function checkAgreement(annotations: Annotations, spec: PodSpec, path: string, errors: Errors): void {
  const { securityContext: common, os } = spec;
  const defaults = ['runtime/default', 'docker/default'];
  const check = (key: string, profile: SeccompProfile | undefined, at: string) =>
    checkSame(
      'seccomp',
      annotationOf(annotations, key),
      profile,
      defaults,
      `${at}.securityContext.seccompProfile`,
      errors,
    );
  check(seccompPod, common?.seccompProfile, path);
  eachContainer(spec, path, ({ name, securityContext }, at) => {
    check(`${seccompContainer}${name}`, securityContext?.seccompProfile, at);
  });
  if (os?.name === 'windows') return;
  eachContainer(spec, path, ({ name, securityContext }, at) => {
    const annotation = annotationOf(annotations, `${appArmorContainer}${name}`);
    const profile = securityContext?.appArmorProfile ?? common?.appArmorProfile;
    checkSame('apparmor', annotation, profile, defaults.slice(0, 1), `${at}.securityContext.appArmorProfile`, errors);
  });
}

function checkSame(
  system: 'seccomp' | 'apparmor',
  annotation: string | undefined,
  profile: AppArmorProfile | SeccompProfile | undefined,
  defaults: readonly string[],
  path: string,
  errors: Errors,
): void {
  if (annotation === undefined || profile === undefined) return;
  const { type, localhostProfile } = profile;
  const isSameType =
    (type === 'Unconfined' && annotation === 'unconfined') ||
    (type === 'RuntimeDefault' && defaults.includes(annotation)) ||
    (type === 'Localhost' && annotation.startsWith(localhost));
  if (!isSameType) {
    errors.push(fieldError.forbidden(`${path}.type`, `${system} type in annotation and field must match`));
  } else if (type === 'Localhost' && annotation !== `${localhost}${localhostProfile}`) {
    const detail = `${system} profile in annotation and field must match`;
    errors.push(fieldError.forbidden(`${path}.localhostProfile`, detail));
  }
}

/** Validates the annotations of a pod besides those that choose profiles. */
export function checkPodAnnotations({ metadata, spec }: Pod, errors: Errors): void {
  const { annotations } = metadata ?? {};
  if (annotations === undefined) return;
  const mirror = annotationOf(annotations, mirrorAnnotation);
  if (mirror !== undefined && !spec.nodeName) {
    const detail = 'must set spec.nodeName if mirror pod annotation is set';
    errors.push(fieldError.invalid(`metadata.annotations[${mirrorAnnotation}]`, mirror, detail));
  }
  const cost = annotationOf(annotations, deletionCost);
  if (cost !== undefined && !(/^(?:0|-\d+|[1-9]\d*)$/.test(cost) && Number(cost) === (Number(cost) | 0))) {
    errors.push(fieldError.invalid(`metadata.annotations[${deletionCost}]`, cost, 'must be a 32bit integer'));
  }
}

/**
 * Rejects changes of the annotations that mark a mirror pod, and of those that choose AppArmor profiles, because the
 * fields were set from them.
 */
export function checkAnnotationChanges(pod: Pod, old: Pod, errors: Errors): void {
  const [now, before] = [pod.metadata?.annotations ?? {}, old.metadata?.annotations ?? {}];
  const refuse = (key: string, verb: string) => {
    const isProfile = key.startsWith(appArmorContainer);
    if (key !== mirrorAnnotation && !isProfile) return;
    const noun = isProfile ? 'AppArmor annotations' : 'mirror pod annotation';
    errors.push(fieldError.forbidden(`metadata.annotations[${key}]`, `may not ${verb} ${noun}`));
  };
  for (const key in before) if (annotationOf(now, key) !== before[key]) refuse(key, 'remove or update');
  for (const key in now) if (annotationOf(before, key) === undefined) refuse(key, 'add');
}
