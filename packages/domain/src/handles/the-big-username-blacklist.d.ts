declare module "the-big-username-blacklist" {
  const blacklist: { readonly list: ReadonlyArray<string> }
  export default blacklist
}
