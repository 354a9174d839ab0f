interface Answer {
  readonly metadata?: { readonly resourceVersion?: string };
  readonly items?: readonly { readonly metadata: { readonly name: string } }[];
}

const path = '/api/v1/namespaces/default/configmaps';

/** ConfigMaps of one namespace over HTTP, with the numbers behind their resourceVersions. */
export class RestoredStore {
  readonly #url: string;

  constructor(url: string) {
    this.#url = url;
  }

  /** Returns the revision. */
  async create(name: string): Promise<number> {
    const body = JSON.stringify({ metadata: { name }, data: { name } });
    const answer = await fetch(this.#url + path, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body,
    });
    const object = (await answer.json()) as Answer;
    if (answer.status !== 201) throw new Error(JSON.stringify(object));
    return Number(object.metadata?.resourceVersion);
  }

  async names(): Promise<string[]> {
    const answer = await fetch(this.#url + path);
    return ((await answer.json()) as Answer).items?.map(({ metadata }) => metadata.name) ?? [];
  }

  /**
   * The status of a watch after a revision: 200 when it continues, 410 when the revision was compacted, immediately or
   * in its first event.
   */
  async watchStatus(after: number): Promise<{ readonly code: number }> {
    const answer = await fetch(`${this.#url}${path}?watch=1&timeoutSeconds=1&resourceVersion=${after}`);
    const text = await answer.text();
    const failure = /"type":"ERROR".*"code":(\d+)/.exec(text)?.[1];
    return { code: failure === undefined ? answer.status : Number(failure) };
  }
}
