import { join } from 'node:path';
import type { SecurityProfile } from '@keelson/container-runtime';
import type { Container, coreV1, Pod } from '@keelson/kinds';
import { ContainerConfigError } from '../environment/container-environment.ts';

/** Annotations that specified profiles before the fields existed; old manifests still contain them. */
const podAnnotation = 'seccomp.security.alpha.kubernetes.io/pod';
const containerAnnotation = 'container.seccomp.security.alpha.kubernetes.io/';

/**
 * The seccomp profile of a container. Settings of the container override those of the pod, and a field overrides an
 * annotation. Undefined when none is set.
 *
 * @throws ContainerConfigError for a profile without a name, or one that is not below --seccomp-profile-root
 */
export function seccompOf(pod: Pod, container: Container, root: string): SecurityProfile | undefined {
  const field = container.securityContext?.seccompProfile ?? undefined;
  const { annotations = {} } = pod.metadata ?? {};
  const word = annotations[`${containerAnnotation}${container.name}`];
  if (field !== undefined) return ofField(field, root);
  if (word !== undefined) return ofAnnotation(word, root);
  const common = pod.spec.securityContext?.seccompProfile ?? undefined;
  const commonWord = annotations[podAnnotation];
  if (common !== undefined) return ofField(common, root);
  return commonWord === undefined ? undefined : ofAnnotation(commonWord, root);
}

function ofField({ type, localhostProfile }: coreV1.SeccompProfile, root: string): SecurityProfile {
  if (type === 'Localhost') return localhost(localhostProfile ?? '', root);
  if (type === 'RuntimeDefault' || type === 'Unconfined')
    return { type: type === 'Unconfined' ? 'unconfined' : 'runtimeDefault' };
  throw new ContainerConfigError(`seccomp profile of unknown type "${type}"`);
}

function ofAnnotation(word: string, root: string): SecurityProfile {
  if (word === 'unconfined') return { type: 'unconfined' };
  if (word === 'runtime/default' || word === 'docker/default') return { type: 'runtimeDefault' };
  if (word.startsWith('localhost/')) return localhost(word.slice('localhost/'.length), root);
  throw new ContainerConfigError(`unknown seccomp profile "${word}"`);
}

function localhost(name: string, root: string): SecurityProfile {
  const parts = name.split('/');
  if (name === '' || name.startsWith('/') || parts.includes('..')) {
    throw new ContainerConfigError(
      `seccomp profile "localhost/${name}" must be a file below the directory of profiles`,
    );
  }
  return { type: 'localhost', localhostRef: join(root, name) };
}
