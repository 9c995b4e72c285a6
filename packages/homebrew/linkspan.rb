# Written by `cargo xtask dist` from packages/homebrew/linkspan.rb.
class Linkspan < Formula
  desc "@DESCRIPTION@"
  homepage "@REPOSITORY@"
  version "@VERSION@"
  license any_of: ["Apache-2.0", "MIT"]

@ARCHIVES@

  def install
    bin.install "linkspan"
    man1.install Dir["share/man/man1/*.1"]
    bash_completion.install "share/bash-completion/completions/linkspan"
    fish_completion.install "share/fish/vendor_completions.d/linkspan.fish"
    zsh_completion.install "share/zsh/site-functions/_linkspan"
  end

  service do
    run [opt_bin/"linkspan", "serve"]
    keep_alive crashed: true
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/linkspan --version")
    (testpath/"run.jsonl").write <<~JSON
      {"type":"thread.started","thread_id":"t1"}
      {"type":"turn.started"}
      {"type":"item.completed","item":{"id":"item_0","type":"agent_message","text":"Done."}}
      {"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":0,"output_tokens":2}}
    JSON
    assert_match "Done.", shell_output("#{bin}/linkspan convert --to text run.jsonl")
  end
end
