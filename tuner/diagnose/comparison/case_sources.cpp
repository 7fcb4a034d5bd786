#include "tuner/diagnose/comparison/case_sources.hpp"

#include <algorithm>

#include "db/enum_text.hpp"
#include "kernels/described/kernel_file.hpp"
#include "kernels/described/source_text.hpp"
#include "kernels/model/embedded.hpp"
#include "kernels/planning/render.hpp"
#include "tuner/diagnose/changes/change_trials.hpp"

namespace greta::tuner {
namespace {

[[noreturn]] void refuse(const std::string& why) {
  throw Error({Status::unavailable, why, {}});
}

std::vector<KernelSource> sources_of(const FailedCase& failed) {
  std::vector<KernelSource> sources;
  for (const std::string& kept : failed.sources)
    sources.push_back(read_kept_source(kept, failed.kernel.language).value());
  return sources;
}

std::string template_of(const KernelSource& source) {
  return source.name + (source.language == Language::glsl ? ".comp" : ".hip");
}

kernels::FindTemplate or_embedded(const FindFile& find) {
  return [&find](std::string_view path) {
    const std::string* const text = find(std::string(path));
    return text != nullptr ? std::string_view(*text) : kernels::embedded_file(path);
  };
}

/// Whether a kernel is made of a template; a vendor's library is not.
bool has_template(const KernelSource& source, const FindFile& find) {
  const std::string path = template_of(source);
  const auto& embedded = kernels::embedded_files();
  return find(path) != nullptr ||
         std::any_of(embedded.begin(), embedded.end(),
                     [&](const EmbeddedFile& file) { return file.path == path; });
}

KernelFile description_of(const FailedCase& failed, const SourceFiles& files) {
  return kernels::read_kernel_file(failed.description, files).value();
}

/// Returns the texts of a described kernel.
std::vector<std::string> planned(const FailedCase& failed, const SourceFiles& files,
                                 const DeviceInfo& device) {
  const KernelFile file = description_of(failed, files);
  const auto operation = kernels::make_described(file.description, file.files, {}).value();
  const auto plan = operation
                        .plan(Problem::parse(failed.kernel.problem).value(), device,
                              config_from_text(failed.kernel.config))
                        .value();
  std::vector<std::string> texts;
  for (const KernelSource& source : plan.sources) texts.push_back(source.text);
  return texts;
}

}  // namespace

FindFile find_in(const SourceFiles& files) {
  return [&files](const std::string& name) {
    const auto found = files.find(name);
    return found == files.end() ? nullptr : &found->second;
  };
}

KnownGood other_files(std::string name, SourceFiles files, const SourceFiles& own) {
  std::erase_if(files, [&](const auto& one) {
    const auto found = own.find(one.first);
    return found != own.end() && found->second == one.second;
  });
  return files.empty() ? KnownGood{} : KnownGood{std::move(name), std::move(files)};
}

SourceFiles template_files(const std::vector<KernelSource>& sources, const FindFile& find) {
  SourceFiles files;
  const kernels::FindTemplate or_own = or_embedded(find);
  const kernels::FindTemplate noting = [&](std::string_view path) {
    const std::string_view text = or_own(path);
    files.try_emplace(std::string(path), text);
    return text;
  };
  for (const KernelSource& source : sources) {
    if (has_template(source, find)) kernels::render(template_of(source), {}, noting);
  }
  return files;
}

SourceFiles source_files(const Description& description, const FindFile& find) {
  SourceFiles files;
  const auto noting = [&](const std::string& name) {
    const std::string* const text = find(name);
    if (text != nullptr) files.try_emplace(name, *text);
    return text;
  };
  kernels::described::whole_text(description.sources, description.include_folders, noting,
                                 description.language)
      .value();
  return files;
}

SourceFiles files_of(const FailedCase& failed, const FindFile& find) {
  if (failed.description.empty()) return template_files(sources_of(failed), find);
  return source_files(description_of(failed, failed.files).description, find);
}

CaseSources::CaseSources(const FailedCase& failed, DeviceInfo device)
    : failed_(failed), device_(std::move(device)), sources_(sources_of(failed)) {
  const auto made = made_of(failed.files);
  if (made.size() != sources_.size()) refuse("this GRETA makes other kernels of the case's files");
  for (std::size_t i = 0; i < made.size(); ++i) {
    const std::string& kept = sources_[i].text;
    const auto [in_kept, in_made] =
        std::mismatch(kept.rbegin(), kept.rend(), made[i].rbegin(), made[i].rend());
    heads_.push_back({{kept.begin(), in_kept.base()}, {made[i].begin(), in_made.base()}});
  }
}

std::vector<std::string> CaseSources::texts(const SourceFiles& files) const {
  std::vector<std::string> texts = made_of(files);
  if (texts.size() != heads_.size()) refuse("the versions have different numbers of kernels");
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto& [kept, made] = heads_[i];
    if (!texts[i].starts_with(made)) refuse("the case's sources are not made of its files");
    texts[i].replace(0, made.size(), kept);
  }
  return texts;
}

std::vector<std::string> CaseSources::made_of(const SourceFiles& files) const {
  if (!failed_.description.empty()) return planned(failed_, files, device_);
  std::vector<std::string> texts;
  const FindFile find = find_in(files);
  for (const KernelSource& source : sources_) {
    texts.push_back(has_template(source, find)
                        ? kernels::render(template_of(source), {}, or_embedded(find))
                        : source.text);
  }
  return texts;
}

}  // namespace greta::tuner
