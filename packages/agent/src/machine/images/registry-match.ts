/** A registry, or a part of one, as credentials name it: `https://*.example:5000/team`. */
interface RegistryPattern {
  readonly host: string;
  readonly port: string;
  readonly path: string;
}

const publicNames = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);

/**
 * How closely a pattern names the repository of a reference, in characters; undefined when it does not. Hosts match
 * label by label, where `*` stands for anything within one; ports must be the same; paths match from their beginning.
 */
export function registryMatch(pattern: string, reference: string): number | undefined {
  const wanted = parsePattern(pattern);
  const actual = parsePattern(repositoryOf(reference));
  const labels = actual.host.split('.');
  const globs = wanted.host.split('.');
  const sameHost =
    globs.length === labels.length && globs.every((glob, position) => matchesGlob(glob, labels[position] ?? ''));
  if (!sameHost || wanted.port !== actual.port) return undefined;
  if (wanted.path !== '' && actual.path !== wanted.path && !actual.path.startsWith(`${wanted.path}/`)) return undefined;
  return pattern.length;
}

/**
 * Registry and path: the first part of a reference is a registry if it looks like a host; else it is the public one.
 */
function repositoryOf(reference: string): string {
  const name = reference.replace(/@.*$/, '').replace(/:[^:/]*$/, '');
  const [first = '', ...rest] = name.split('/');
  const named = rest.length > 0 && (first.includes('.') || first.includes(':') || first === 'localhost');
  const [host, path] = named ? [first, rest.join('/')] : ['docker.io', name];
  return `${host}/${publicNames.has(host) && !path.includes('/') ? `library/${path}` : path}`;
}

/** Paths that only name the version of the protocol mean the whole registry. */
function parsePattern(text: string): RegistryPattern {
  const [address = '', ...parts] = text
    .trim()
    .replace(/^https?:\/\//, '')
    .split('/');
  const [, host = '', port = ''] = /^(.*?)(?::(\d+))?$/.exec(address) ?? [];
  if (/^v[12]$/.test(parts[0] ?? '')) parts.shift();
  return {
    host: publicNames.has(host) ? 'docker.io' : host.toLowerCase(),
    port,
    path: parts.filter((part) => part !== '').join('/'),
  };
}

function matchesGlob(glob: string, label: string): boolean {
  const source = glob.split('*').map((part) => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
  return new RegExp(`^${source.join('.*')}$`).test(label);
}
