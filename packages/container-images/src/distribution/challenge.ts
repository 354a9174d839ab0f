/** Authentication that a registry requests. */
export type Challenge =
  | { readonly scheme: 'basic' }
  | { readonly scheme: 'bearer'; readonly realm: string; readonly service?: string; readonly scope?: string };

/** The first supported challenge of a `WWW-Authenticate` header; bearer is preferred to basic. */
export function parseChallenge(header: string): Challenge | undefined {
  const found = [...header.matchAll(/(?:^|,)\s*(basic|bearer)(?=[\s,]|$)/gi)];
  const starts = found.map(({ index }) => index);
  const challenges = found.map((match, position): Challenge | undefined => {
    if (match[1]?.toLowerCase() === 'basic') return { scheme: 'basic' };
    const { realm, service, scope } = parameters(header.slice(match.index + match[0].length, starts[position + 1]));
    if (realm === undefined) return undefined;
    return {
      scheme: 'bearer',
      realm,
      ...(service !== undefined && { service }),
      ...(scope !== undefined && { scope }),
    };
  });
  return (
    challenges.find((challenge) => challenge?.scheme === 'bearer') ??
    challenges.find((challenge) => challenge !== undefined)
  );
}

function parameters(text: string): Partial<Record<string, string>> {
  const pairs = text.matchAll(/([a-z_]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))/gi);
  return Object.fromEntries(
    [...pairs].map(([, key = '', quoted, plain]) => [
      key.toLowerCase(),
      quoted?.replace(/\\(.)/g, '$1') ?? plain ?? '',
    ]),
  );
}
