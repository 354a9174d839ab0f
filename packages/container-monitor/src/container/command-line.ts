import { type ContainerConfig, type ImageConfig, RuntimeError } from '@keelson/container-runtime';

/** The text, if a process can be given it. @throws `InvalidArgument` */
export function passable(text: string, forbidden: RegExp, what: string): string {
  if (forbidden.test(text))
    throw new RuntimeError(
      'InvalidArgument',
      `${what} cannot be passed to a process: ${JSON.stringify(text.slice(0, 64))}`,
    );
  return text;
}

/**
 * Program and arguments, from the container and its image.
 * @throws `InvalidArgument` when there are none, or NUL is in them
 */
export function commandOf(config: ContainerConfig, image: ImageConfig): string[] {
  const { command = [], args = [] } = config;
  const words =
    command.length > 0
      ? [...command, ...args]
      : [...(image.entrypoint ?? []), ...(args.length > 0 ? args : (image.cmd ?? []))];
  if (words.length === 0)
    throw new RuntimeError('InvalidArgument', 'neither the container nor its image names a command');
  return words.map((word) => passable(word, /\0/, 'command'));
}

/** The environment over `defaults`: that of the image, then that of the container. @throws `InvalidArgument` */
export function environmentOf(
  config: ContainerConfig,
  image: ImageConfig,
  defaults: Iterable<readonly [string, string]>,
): Map<string, string> {
  const env = new Map<string, string>(defaults);
  for (const entry of image.env ?? []) env.set(entry.split('=', 1)[0] ?? '', entry.slice(entry.indexOf('=') + 1));
  for (const { name, value } of config.env ?? [])
    env.set(passable(name, /^$|[=\0]/, 'environment name'), passable(value, /\0/, `value of ${name}`));
  return env;
}
