import type { Image } from '@keelson/container-runtime';
import type { Container, Pod } from '@keelson/kinds';
import { ContainerConfigError } from '../environment/container-environment.ts';
import { mustNotBeRoot, userOf } from './security.ts';

/** Rejects a container that would run as root despite `runAsNonRoot`. @throws ContainerConfigError */
export async function checkUser(
  pod: Pod,
  container: Container,
  imageOf: () => Promise<Image | undefined>,
): Promise<void> {
  if (!mustNotBeRoot(pod, container)) return;
  const user = userOf(pod, container);
  if (user === 0) throw new ContainerConfigError("container's runAsUser breaks non-root policy");
  if (user !== undefined) return;
  const image = await imageOf();
  if (image?.uid !== undefined && image.uid !== 0) return;
  throw new ContainerConfigError(
    image?.username
      ? `container has runAsNonRoot and image has non-numeric user (${image.username}), cannot verify user is non-root`
      : 'container has runAsNonRoot and image will run as root',
  );
}
